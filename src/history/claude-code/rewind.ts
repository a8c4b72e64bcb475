import type { LeftBehind } from "../port.ts";
import { type LineNotes, pushBounded, type Step } from "./notes.ts";

/** So far back a fork is told from a rewind; what forks off further back is one. */
const STEPS_MAX = 64;

/**
 * What a new row leaves behind. Most rows with an older parent leave nothing: blocks and results of one
 * answer stand side by side, bookkeeping rows are no conversation, an error that was written late is no
 * new branch, and a replay after compaction says the same again. Call it before `addStep`.
 */
export function rewindBy(
  notes: LineNotes,
  step: Omit<Step, "ref">,
  parentId: string | null,
): Omit<LeftBehind, "inlineId"> | null {
  const { steps } = notes;
  if (step.kind !== "prompt" || parentId === null || steps.length === 0) return null;
  if (steps.at(-1)?.id === parentId) return null;
  const at = steps.findLastIndex(({ id }) => id === parentId);
  const parent = steps[at];
  const beside = steps.slice(at + 1).filter((other) => isSaid(other) && !isOneAnswer(other, parent));
  if (beside.length === 0 || parent?.kind === "lateError") return null;
  if (parent !== undefined && beside.every((other) => other.at !== null && other.at === step.at)) return null;
  const afterRef = parent === undefined ? parentId : parent.ref;
  return { afterRef, beforeRef: step.id, reason: "the agent was taken back to before them" };
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
