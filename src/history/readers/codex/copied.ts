import type { JsonObject } from "../../lines/json-lines.ts";
import { asNumber, asObject, asText } from "../../lines/value.ts";
import type { CodexFold } from "./notes.ts";
import type { ParsedRow } from "./entries.ts";

/**
 * Whose a row is. A session that was forked from another begins with rows copied from that one, mostly
 * with new times. Its own begin where the agent's own numbers say so, where times pass the session's
 * beginning, or with the first record that names it or a turn of its own; turns have ids with the time in
 * them.
 */
export function ownerOf(fold: CodexFold, type: string, parsed: ParsedRow): "own" | "copied" | "left out" {
  const { notes } = fold;
  const { row, payload, at } = parsed;
  const ordinal = asNumber(row.value["ordinal"]);
  if (notes.ownFromOffset !== null) {
    if (row.offset < notes.ownFromOffset) return "left out";
    notes.copied = null;
  }
  if (notes.ownFromOrdinal !== null && ordinal !== null) {
    if (ordinal < notes.ownFromOrdinal) return "left out";
    notes.copied = null;
  }
  if (notes.copied === null) return "own";
  if (notes.baseEndOrdinal !== null && ordinal !== null) {
    if (ordinal < notes.baseEndOrdinal) return notes.copied === "kept" ? "copied" : "left out";
    notes.copied = null;
    return "own";
  }
  const isBefore = at !== null && notes.metaAt !== null && at < notes.metaAt;
  // Where the copied rows kept their times, the first that is not older than the session is its own.
  const isAfterOlder = notes.hasOlder && at !== null && !isBefore;
  notes.hasOlder ||= isBefore;
  if (!isBefore && (isAfterOlder || isProof(fold, type, payload))) {
    notes.copied = null;
    notes.ownFromOffset = row.offset;
    return "own";
  }
  return notes.copied === "kept" ? "copied" : "left out";
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
  // An id without a time proves nothing on an item, which is copied as it is.
  if (begun === null) return type === "event_msg";
  return begun >= (timeIn(facts.id) ?? notes.metaAt ?? 0);
}

function turnIdOf(payload: JsonObject): string | null {
  const passed = asObject(payload["internal_chat_message_metadata_passthrough"]);
  return asText(payload["turn_id"]) ?? asText(passed?.["turn_id"]);
}

/** Milliseconds since 1970 from an id of the kind that begins with its time (UUID version 7). */
export function timeIn(id: string): number | null {
  const parts = /^([\da-f]{8})-([\da-f]{4})-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/iu.exec(id);
  return parts === null ? null : Number.parseInt(`${parts[1]}${parts[2]}`, 16);
}
