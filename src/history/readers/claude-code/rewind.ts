import type { FileRange } from "../../facts.ts";
import type { LeftBehind } from "../../port.ts";
import type { LineNotes, Step } from "./notes.ts";
import { pushBounded } from "../../lines/value.ts";

/** How many recent rows are remembered. Of older rows, only prompts are remembered, in `LineNotes.turns`. */
const STEPS_MAX = 64;
const TURNS_CHARACTERS_MAX = 32 * 1024;

/**
 * Returns the range of entries that a rewind removed before this new row was written, or null. A row whose
 * parent is not the last row does not always mean a rewind: blocks and results of one answer are siblings,
 * bookkeeping rows are not messages, an error may be written late, and a replay after compaction repeats
 * messages. Call this before `addTurn` and `addStep`.
 */
export function rewindBy(
  notes: LineNotes,
  step: Omit<Step, "ref">,
  parentId: string | null,
): (Omit<LeftBehind, "inlineId"> & { readonly range: FileRange }) | null {
  const { steps, turns } = notes;
  if (step.kind !== "prompt" || steps.length === 0 || steps.at(-1)?.id === parentId) return null;
  // The file repeats a row that was already read.
  if (steps.some(({ id }) => id === step.id) || turns.includes(`\t${step.id}\t`)) return null;
  const at = parentId === null ? -1 : steps.findLastIndex(({ id }) => id === parentId);
  const parent = steps[at];
  // No row has been forgotten yet, so the parent is in another file or could not be read.
  if (parentId !== null && parent === undefined && steps.length < STEPS_MAX) return null;
  const beside = steps.slice(at + 1).filter((other) => isSaid(other) && !isOneAnswer(other, parent));
  if (beside.length === 0 || parent?.kind === "lateError") return null;
  if (beside.every((other) => other.at !== null && other.at === step.at)) return null;
  const far = parent === undefined ? firstBelow(notes, parentId) : null;
  const afterRef = far === null ? (parent?.ref ?? null) : far.ref;
  const range = { from: far?.offset ?? beside[0]?.offset ?? step.offset, to: step.offset };
  return { afterRef, beforeRef: step.id, reason: "the agent was taken back to before them", range };
}

/**
 * Finds where the removed entries begin when the parent row is no longer in `steps`: at the first prompt
 * below that parent. Returns the prompt's offset and the ref of the entry before the prompt. If no such
 * prompt is remembered, returns the oldest remembered row, or the beginning of the file if `parentId` is
 * null.
 */
function firstBelow({ steps, turns }: LineNotes, parentId: string | null): Pick<Step, "ref" | "offset"> {
  const [, , offset, ref] = lineOf(turns, parentId)?.split("\t") ?? [];
  if (offset !== undefined) return { ref: ref || null, offset: Number(offset) };
  return (parentId === null ? undefined : steps[0]) ?? { ref: null, offset: 0 };
}

/**
 * Remembers a prompt. If the session is later rewound past this prompt, the file gets another prompt with the
 * same parent. Call this before the prompt's entry is added.
 */
export function addTurn(
  notes: LineNotes,
  { id, offset }: { id: string; offset: number },
  parentId: string | null,
): void {
  const isNext = notes.steps.at(-1)?.id === parentId;
  if (!isNext && lineOf(notes.turns, parentId) !== null) return;
  const parts = [parentId ?? "", id, String(offset), notes.lastRef ?? ""];
  if (parts.some((part) => /[\t\n]/u.test(part))) return;
  notes.turns += `${parts.join("\t")}\n`;
  if (notes.turns.length <= TURNS_CHARACTERS_MAX) return;
  notes.turns = notes.turns.slice(notes.turns.indexOf("\n", TURNS_CHARACTERS_MAX / 2) + 1);
}

function lineOf(turns: string, parentId: string | null): string | null {
  const begin = `${parentId ?? ""}\t`;
  const start = turns.startsWith(begin) ? 0 : turns.indexOf(`\n${begin}`) + 1;
  if (start === 0 && !turns.startsWith(begin)) return null;
  return turns.slice(start, turns.indexOf("\n", start));
}

export function addStep(notes: LineNotes, step: Omit<Step, "ref">): void {
  pushBounded(notes.steps, { ...step, ref: notes.lastRef }, STEPS_MAX);
}

function isSaid({ kind }: Step): boolean {
  return kind === "prompt" || kind === "answer";
}

function isOneAnswer(other: Step, parent: Step | undefined): boolean {
  return other.messageId !== null && other.messageId === parent?.messageId;
}
