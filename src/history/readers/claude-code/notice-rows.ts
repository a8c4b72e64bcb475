import type { Row } from "../../lines/json-lines.ts";
import { timeOf } from "../../lines/text.ts";
import { asObject, asText } from "../../lines/value.ts";
import { reported, said } from "../../lines/entry-body.ts";
import { movedOn } from "../../lines/spawn-call.ts";
import { notified } from "./calls.ts";
import { prompted } from "./ending.ts";
import { addEntry, asker, type ParsedRow } from "./entries.ts";
import type { ClaudeFold, Line, Step } from "./notes.ts";
import { readTaskNotices, type TaskNotice } from "./task-notice.ts";
import { textOf, type UserRow } from "./user-row.ts";

export function foldNotice(fold: ClaudeFold, parsed: ParsedRow, { text, isNoticeCarrier }: UserRow): void {
  const { line, at } = parsed;
  const notices = readTaskNotices(text, isNoticeCarrier);
  if (notices.length === 0) addEntry(fold, parsed, reported(text));
  else foldNotices(fold, parsed, { text, notices });
  // The notice starts new work, as a prompt does. Reports from before it are about earlier work.
  line.facts.promptedAt = at ?? line.facts.promptedAt;
  line.facts.messageCount += 1;
  movedOn(line);
  prompted(line, at);
}

/** Records the notices of a row. Adds an entry only if a notice is new, because rows may repeat notices. */
function foldNotices(
  fold: ClaudeFold,
  parsed: ParsedRow,
  { text, notices }: { text: string; notices: readonly TaskNotice[] },
): void {
  let ref: string | null = null;
  for (const notice of notices) if (notified(parsed.line, notice, parsed.at)) ref ??= notice.ref;
  if (ref !== null) addEntry(fold, parsed, { ...reported(text), ref });
}

/** Uses only attachments with a prompt or a notice that was queued while the agent was working. */
export function foldAttachment(fold: ClaudeFold, parsed: ParsedRow): Step["kind"] {
  const attachment = asObject(parsed.row.value["attachment"]);
  if (attachment?.["type"] !== "queued_command") return "other";
  const text = textOf(attachment["prompt"]);
  const origin =
    asText(asObject(attachment["origin"])?.["kind"]) ??
    asText(asObject(parsed.row.value["origin"])?.["kind"]);
  const isCarrier = origin === "task-notification" || attachment["commandMode"] === "task-notification";
  const notices = readTaskNotices(text, isCarrier);
  if (notices.length > 0) foldNotices(fold, parsed, { text, notices });
  else if (text.trim() !== "") addEntry(fold, parsed, said(asker(parsed.line), text));
  return "other";
}

/** A queue row is sometimes the only record of a sub-agent's end. */
export function foldQueued(fold: ClaudeFold, row: Row): void {
  if (row.value["operation"] !== "enqueue") return;
  const text = asText(row.value["content"]);
  const notices = text === null ? [] : readTaskNotices(text, false);
  if (text === null || notices.length === 0) return;
  const line: Line = { inlineId: null, facts: fold.facts, notes: fold.notes.own };
  const parsed: ParsedRow = { row, line, at: timeOf(row.value["timestamp"]), count: 0 };
  foldNotices(fold, parsed, { text, notices });
}
