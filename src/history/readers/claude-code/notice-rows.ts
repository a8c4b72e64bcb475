import type { Row } from "../../lines/json-lines.ts";
import { timeOf } from "../../lines/text.ts";
import { asObject, asText } from "../../lines/value.ts";
import { movedOn, notified } from "./calls.ts";
import { prompted } from "./ending.ts";
import { addEntry, asker, said, type TakenRow } from "./entries.ts";
import type { ClaudeFold, Line, Step } from "./notes.ts";
import { readTaskNotices, type TaskNotice } from "./task-notice.ts";
import { textOf, type UserRow } from "./user-row.ts";

/** The three kinds of rows that tell a session how what it started in the background has ended. */

export function takeNotice(fold: ClaudeFold, taken: TakenRow, { text, isNoticeCarrier }: UserRow): void {
  const { line, at } = taken;
  const notices = readTaskNotices(text, isNoticeCarrier);
  if (notices.length === 0) addNotice(fold, taken, { text });
  else takeNotices(fold, taken, { text, notices });
  // It is woken by it: what was told of it before is about an earlier stretch of work.
  line.facts.promptedAt = at ?? line.facts.promptedAt;
  line.facts.messageCount += 1;
  movedOn(line);
  prompted(line, at);
}

/** One row may carry several notices, and each may have come before through another carrier. */
function takeNotices(
  fold: ClaudeFold,
  taken: TakenRow,
  { text, notices }: { text: string; notices: readonly TaskNotice[] },
): void {
  const fresh = notices.filter((notice) => notified(taken.line, notice, taken.at));
  if (fresh.length > 0) addNotice(fold, taken, { text, ref: fresh[0]?.ref });
}

function addNotice(
  fold: ClaudeFold,
  taken: TakenRow,
  { text, ref }: { text: string; ref?: string | undefined },
): void {
  const entry = { author: "session", kind: "callback", body: { text } } as const;
  addEntry(fold, taken, ref === undefined ? entry : { ...entry, ref });
}

/** Only what was typed, or told, while the agent was at work. */
export function takeAttachment(fold: ClaudeFold, taken: TakenRow): Step["kind"] {
  const attachment = asObject(taken.row.value["attachment"]);
  if (attachment?.["type"] !== "queued_command") return "other";
  const text = textOf(attachment["prompt"]);
  const origin =
    asText(asObject(attachment["origin"])?.["kind"]) ?? asText(asObject(taken.row.value["origin"])?.["kind"]);
  const isCarrier = origin === "task-notification" || attachment["commandMode"] === "task-notification";
  const notices = readTaskNotices(text, isCarrier);
  if (notices.length > 0) takeNotices(fold, taken, { text, notices });
  else if (text.trim() !== "") addEntry(fold, taken, said(asker(taken.line), text));
  return "other";
}

/** Sometimes the only place where the end of a sub-agent stands. */
export function takeQueued(fold: ClaudeFold, row: Row): void {
  if (row.value["operation"] !== "enqueue") return;
  const text = asText(row.value["content"]);
  const notices = text === null ? [] : readTaskNotices(text, false);
  if (text === null || notices.length === 0) return;
  const line: Line = { inlineId: null, facts: fold.facts, notes: fold.notes.own };
  const taken: TakenRow = { row, line, at: timeOf(row.value["timestamp"]), count: 0 };
  takeNotices(fold, taken, { text, notices });
}
