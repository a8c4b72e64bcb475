import { hash } from "node:crypto";
import type { Ending } from "../../facts.ts";
import type { Fold } from "../../lines/row-reader.ts";

/** Notes that the reader keeps from row to row. */
export interface Notes {
  /** The newest messages on the agent's path, in order. */
  steps: Step[];
  /** Older steps were dropped. */
  isCut: boolean;
  /** The newest calls that were given, and whether their results were. */
  calls: GivenCall[];
  lastRef: string | null;
  projectHash: string | null;
  /** The working folder that Gemini CLI named to its model. */
  saidFolder: string | null;
}

/** One message, with the fields needed when it is rewritten, included in a snapshot or rewound. */
export interface Step {
  readonly id: string;
  /** The newest entry after the message was folded. */
  ref: string | null;
  kind: "prompt" | "answer" | "other";
  ending: Ending["kind"];
  at: number | null;
  /** Where it was first written. */
  readonly offset: number;
  /** `markOf` its text; null before it was folded. */
  text: string | null;
  /** `markOf` each of its thoughts. */
  thoughts: string[];
  tokens: Tokens;
}

export interface Tokens {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

export interface GivenCall {
  readonly id: string;
  called: boolean;
  done: boolean;
  /** Its result was given without a text. */
  isEmpty: boolean;
}

export type GeminiFold = Fold<Notes>;

export function noNotes(): Notes {
  return { steps: [], isCut: false, calls: [], lastRef: null, projectHash: null, saidFolder: null };
}

const STEPS_MAX = 256;
const CALLS_MAX = 512;

export function addStep(notes: Notes, step: Step): void {
  notes.steps.push(step);
  if (notes.steps.length <= STEPS_MAX) return;
  notes.steps.shift();
  notes.isCut = true;
}

/** Returns a mark that differs when the text has changed. */
export function markOf(text: string): string {
  return hash("sha1", text, "hex").slice(0, 16);
}

/** Returns which entries of a call have been given so far. */
export function givenCall(notes: Notes, id: string): GivenCall {
  const known = notes.calls.findLast((call) => call.id === id);
  if (known !== undefined) return known;
  const call = { id, called: false, done: false, isEmpty: false };
  notes.calls.push(call);
  if (notes.calls.length > CALLS_MAX) notes.calls.shift();
  return call;
}
