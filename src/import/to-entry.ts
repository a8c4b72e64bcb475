import { cut } from "../history/lines/text.ts";
import type { EntryBody } from "../contract/index.ts";
import { redact } from "../secrets/redact.ts";
import { redactDeep } from "../secrets/redact-deep.ts";
import type { HistoryEntry, LeftBehind } from "../history/port.ts";
import type { ImportedEntry } from "../store/port/store.ts";
import { refNumber } from "./identity.ts";

/** How much of a text the store keeps; the whole text is read from the file on request. */
const TEXT_MAX = 8 * 1024;
/** How much of a text is read: more than is kept, so that a secret across the cut is redacted whole. */
export const READ_TEXT_MAX = TEXT_MAX + 4 * 1024;
const INPUT_STRING_MAX = 1024;
const LIST_MAX = 100;

export function toEntry(entry: HistoryEntry): ImportedEntry {
  const { author, kind, isSubagent, at } = entry;
  const body = JSON.stringify(replacing(entry, capped(redactDeep(entry.body))));
  return { ref: refNumber(entry.ref), author, kind, isSubagent, at: Math.round(at), body };
}

/** Entries never change, so the new text says that it replaces an earlier one. */
function replacing({ replaces }: HistoryEntry, body: EntryBody): EntryBody {
  if (replaces === undefined) return body;
  return { ...body, text: `${body.text}\n[The agent rewrote this: it replaces the earlier text.]` };
}

/** Entries are never deleted. Instead, a notice after them says that the agent no longer uses them. */
export function leftBehindEntry(
  left: LeftBehind,
  { isSubagent, at, first }: { isSubagent: boolean; at: number; first: string | null },
): ImportedEntry {
  const back = first === null ? "back to an earlier point" : `back to and including “${first}”`;
  const where = left.afterRef === null ? "All entries before this" : `The entries before this, ${back},`;
  const text = redact(`${where} are no longer on the agent's path: ${left.reason}`);
  const ref = -1 - refNumber(`left behind ${left.afterRef} ${left.beforeRef} ${left.reason}`);
  return notice(text, { ref, isSubagent, at });
}

export function rewrittenEntry(voidCount: number, next: ImportedEntry): ImportedEntry {
  const what = voidCount === 1 ? "One entry" : `${voidCount} entries`;
  const text = `${what} before this ${voidCount === 1 ? "is" : "are"} no longer in the agent's file, which was replaced.`;
  return notice(text, { ...next, ref: -1 - next.ref });
}

/** A notice that the session continues another one, which keeps the shared entries. */
export function continuesEntry(shortId: string, next: ImportedEntry): ImportedEntry {
  const text = `The entries before this are in session ${shortId}, which this session continues.`;
  return notice(text, { ...next, ref: -1 - refNumber(`goes on from ${shortId}`) });
}

function notice(
  text: string,
  { ref, isSubagent, at }: Pick<ImportedEntry, "ref" | "isSubagent" | "at">,
): ImportedEntry {
  return { ref, author: "daemon", kind: "notice", isSubagent, at, body: JSON.stringify({ text }) };
}

function capped(body: EntryBody): EntryBody {
  const { text, command, input, paths, steps } = body;
  return {
    ...body,
    text: cut(text, TEXT_MAX),
    ...(command === undefined ? {} : { command: cut(command, TEXT_MAX) }),
    ...(input === undefined ? {} : { input: cappedInput(input) }),
    ...(paths === undefined ? {} : { paths: paths.slice(0, LIST_MAX) }),
    ...(steps === undefined ? {} : { steps: steps.slice(0, LIST_MAX) }),
  };
}

function cappedInput(input: unknown): unknown {
  if (sizeOf(input) <= TEXT_MAX) return input;
  const shorter = withShortStrings(input);
  return sizeOf(shorter) <= TEXT_MAX ? shorter : { cut: cut(JSON.stringify(shorter), TEXT_MAX) };
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0;
}

function withShortStrings(value: unknown): unknown {
  if (typeof value === "string") return cut(value, INPUT_STRING_MAX);
  if (Array.isArray(value)) return value.slice(0, LIST_MAX).map(withShortStrings);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withShortStrings(each)]));
}
