import { asNumber, asObject, asText, type JsonObject } from "../../lines/value.ts";
import type { CodexFold } from "./notes.ts";
import type { ParsedRow } from "./entries.ts";

/**
 * Whether a row is a copy from another session and must be left out. A forked session's file begins with such
 * copies, usually with new timestamps. The session's own rows begin at the first of these: the row with the
 * ordinal that the file names; a row that is not older than the session, after rows that were older; a record
 * that names this session or one of its turns (turn ids contain their time).
 */
export function isLeftOut(fold: CodexFold, type: string, parsed: ParsedRow): boolean {
  const { notes } = fold;
  const { row, payload, at } = parsed;
  const ordinal = asNumber(row.value["ordinal"]);
  if (notes.ownFromOffset !== null) {
    if (row.offset < notes.ownFromOffset) return true;
    notes.copied = null;
  }
  if (notes.ownFromOrdinal !== null && ordinal !== null) {
    if (ordinal < notes.ownFromOrdinal) return true;
    notes.copied = null;
  }
  if (notes.copied === null) return false;
  if (notes.baseEndOrdinal !== null && ordinal !== null) {
    if (ordinal >= notes.baseEndOrdinal) notes.copied = null;
    return notes.copied === "left out";
  }
  const isBefore = at !== null && notes.metaAt !== null && at < notes.metaAt;
  // Copied rows that kept their timestamps are older than the session. The first row that is not older is the
  // session's own.
  const isAfterOlder = notes.hasOlder && at !== null && !isBefore;
  notes.hasOlder ||= isBefore;
  if (!isBefore && (isAfterOlder || isProof(fold, type, payload)))
    [notes.copied, notes.ownFromOffset] = [null, row.offset];
  return notes.copied === "left out";
}

function isProof({ facts, notes }: CodexFold, type: string, payload: JsonObject): boolean {
  const kind = asText(payload["type"]);
  const thread = asText(payload["thread_id"]);
  if (thread !== null) return thread.toLowerCase() === facts.id;
  const isTurn =
    type === "turn_context" ||
    (type === "event_msg" && (kind === "task_started" || kind === "turn_started")) ||
    type === "response_item";
  const turnId = isTurn ? turnIdOf(payload) : null;
  if (turnId === null) return false;
  const begun = timeIn(turnId);
  // Copied items keep their turn ids. So if the id has no time, an item may be a copy, but an event is not.
  if (begun === null) return type === "event_msg";
  return begun >= (timeIn(facts.id) ?? notes.metaAt ?? 0);
}

function turnIdOf(payload: JsonObject): string | null {
  const passed = asObject(payload["internal_chat_message_metadata_passthrough"]);
  return asText(payload["turn_id"]) ?? asText(passed?.["turn_id"]);
}

/** Returns the time at the beginning of a version 7 UUID, in milliseconds since 1970. */
export function timeIn(id: string): number | null {
  const parts = /^([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/iu.exec(id);
  return parts === null ? null : Number.parseInt(`${parts[1]}${parts[2]}`, 16);
}
