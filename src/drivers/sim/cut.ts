import type { Record } from "./journal.ts";

/** A prompt interrupted by a crash or a usage limit, and how far it had come. */
export interface Cut {
  readonly text: string;
  readonly done: number;
  readonly bound: Map<string, unknown>;
  /** The last text that the agent said. It is said again if no step remains. */
  readonly said: string | null;
  readonly unanswered: readonly string[];
}

const CUT_MARKS = ["[Kinfold] Your turn was cut", "[Kinfold] The usage limit is over"];
const MISSING_MARK = "These messages had not reached you:\n\n";

/** Recognises, as a model would, a prompt that asks to continue an interrupted turn. */
export function asksToContinue(text: string): boolean {
  return CUT_MARKS.some((mark) => text.startsWith(mark));
}

/** Returns the missed messages in a prompt that asks to continue an interrupted turn; null if none. */
export function messagesIn(text: string): string | null {
  const at = text.indexOf(MISSING_MARK);
  return at === -1 ? null : text.slice(at + MISSING_MARK.length);
}

/** Returns the last prompt of a loaded session and its progress; null if there was no prompt. */
export function cutOf(records: readonly Record[]): Cut | null {
  const at = records.findLastIndex(
    (record) => record.kind === "user" && record.steered !== true && !asksToContinue(record.text),
  );
  const prompt = records[at];
  if (prompt === undefined || prompt.kind !== "user") return null;
  const bound = new Map<string, unknown>();
  let done = 0;
  let said: string | null = null;
  const unanswered: string[] = [];
  for (const record of records.slice(at + 1)) {
    if (record.kind === "agent") said = record.text;
    if (record.kind === "user" && record.steered === true) unanswered.push(record.text);
    if (record.kind === "answered") unanswered.shift();
    if (record.kind !== "step") continue;
    done = record.done;
    if (record.as !== null) bound.set(record.as, record.value);
  }
  return { text: prompt.text, done, bound, said, unanswered };
}
