import { hash } from "node:crypto";
import type { Ending, Tokens } from "../../facts.ts";
import { pushBounded } from "../../lines/value.ts";
import type { Fold } from "../../lines/row-reader.ts";

export interface Notes {
  /** The newest messages that are still part of the conversation, in order. */
  steps: Step[];
  isCut: boolean;
  /** The newest calls for which entries were added. */
  calls: GivenCall[];
  lastRef: string | null;
  projectHash: string | null;
  saidFolder: string | null;
}

/** One message, with the facts that are needed when it is rewritten, rewound, or repeated in a snapshot. */
export interface Step {
  readonly id: string;
  /** The ref of the transcript's newest entry just after this message was read. */
  ref: string | null;
  kind: "prompt" | "answer" | "other";
  ending: Ending["kind"];
  at: number | null;
  readonly offset: number;
  /** The `markOf` value of the message's text, to detect a rewrite; null until the text is read. */
  text: string | null;
  /** The `markOf` value of each of the message's thoughts. */
  thoughts: string[];
  tokens: Tokens;
}

export interface GivenCall {
  readonly id: string;
  called: boolean;
  done: boolean;
  /** The result's entry was added, but had no text yet. */
  isEmpty: boolean;
}

export type GeminiFold = Fold<Notes>;

export function noNotes(): Notes {
  return { steps: [], isCut: false, calls: [], lastRef: null, projectHash: null, saidFolder: null };
}

const STEPS_MAX = 256;
const CALLS_MAX = 512;

export function addStep(notes: Notes, step: Step): void {
  if (pushBounded(notes.steps, step, STEPS_MAX)) notes.isCut = true;
}

export function markOf(text: string): string {
  return hash("sha1", text, "hex").slice(0, 16);
}

export function givenCall(notes: Notes, id: string): GivenCall {
  const known = notes.calls.findLast((call) => call.id === id);
  if (known !== undefined) return known;
  const call = { id, called: false, done: false, isEmpty: false };
  pushBounded(notes.calls, call, CALLS_MAX);
  return call;
}
