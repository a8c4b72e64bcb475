import type { Ending, SessionFacts } from "../../facts.ts";
import type { Fold } from "../../lines/row-reader.ts";

/** Notes that the reader keeps from row to row about one line of work in a file. */
export interface LineNotes {
  /** Calls without a result yet. */
  open: OpenCall[];
  /** Spawn calls without a result that the session may still be waiting for. */
  unanswered: string[];
  /** The usage of the last few answers: one answer consists of several rows. */
  recent: MessageUsage[];
  /** The id of the answer that is being written. */
  messageId: string | null;
  customTitle: string | null;
  /** The ending before a command that the agent ran by itself; the command's output restores it. */
  before: Ending | null;
  steps: Step[];
  /**
   * The positions of the newest prompts, reaching further back than `steps`: one line for each, with its
   * parent, its id, its offset and the newest entry before it. Kept as one string, because it is copied with
   * every state.
   */
  turns: string;
  lastRef: string | null;
  /** Refs of notices that were already given, whichever row carried them. */
  notices: string[];
}

export interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly command: string | null;
}

export interface MessageUsage {
  readonly id: string;
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

/** One row of the graph, with the fields needed to recognise a rewind. */
export interface Step {
  readonly id: string;
  /** The newest entry after this row was folded. */
  readonly ref: string | null;
  readonly kind: "prompt" | "answer" | "result" | "lateError" | "other";
  readonly at: number | null;
  readonly messageId: string | null;
  /** Where the row begins in the file. */
  readonly offset: number;
}

export interface Notes {
  readonly own: LineNotes;
  /** By `inlineKey`. */
  readonly inline: Record<string, LineNotes>;
  /** The newest sidechain, for rows whose own chain is unknown. */
  inlineId: string | null;
}

export type ClaudeFold = Fold<Notes>;

/** One line of work: the file's own session, or a sub-agent whose rows are in the same file. */
export interface Line {
  readonly inlineId: string | null;
  readonly facts: SessionFacts;
  readonly notes: LineNotes;
}

export function noNotes(): LineNotes {
  return {
    open: [],
    unanswered: [],
    recent: [],
    messageId: null,
    customTitle: null,
    before: null,
    steps: [],
    turns: "",
    lastRef: null,
    notices: [],
  };
}

/** Returns a safe key: ids come from a file, and one may equal a built-in property name of objects. */
export function inlineKey(id: string): string {
  return `=${id}`;
}

/** Appends to a list and drops the oldest items beyond `max`. */
export function pushBounded<T>(list: T[], item: T, max: number): void {
  list.push(item);
  if (list.length > max) list.splice(0, list.length - max);
}
