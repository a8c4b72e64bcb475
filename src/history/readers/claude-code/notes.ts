import type { Ending, SessionFacts } from "../../facts.ts";
import type { Fold } from "../../lines/row-reader.ts";

/** What the next row has to know about those before it, for one line of work in a file. */
export interface LineNotes {
  /** Calls without a result yet. */
  open: OpenCall[];
  /** Spawn calls without a result that the session may still be waiting for. */
  unanswered: string[];
  /** What the last few answers used: one answer is several rows. */
  recent: MessageUsage[];
  /** The id of the answer that is being written. */
  messageId: string | null;
  customTitle: string | null;
  /** The ending before a command that the agent ran by itself, to which its output returns. */
  before: Ending | null;
  steps: Step[];
  /**
   * Where the newest prompts hang, further back than the steps go: a line for each, with its parent, its
   * own id, its offset and the newest entry before it. One text, because it is copied with every state.
   */
  turns: string;
  lastRef: string | null;
  /** Refs of notices that were already given, through whichever carrier. */
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

/** One row of the graph, as far as it matters for telling a rewind from everything that looks like one. */
export interface Step {
  readonly id: string;
  /** The newest entry when this row had been folded. */
  readonly ref: string | null;
  readonly kind: "prompt" | "answer" | "result" | "lateError" | "other";
  readonly at: number | null;
  readonly messageId: string | null;
  /** Where it begins in the file. */
  readonly offset: number;
}

export interface Notes {
  readonly own: LineNotes;
  /** By `inlineKey`. */
  readonly inline: Record<string, LineNotes>;
  /** The newest sidechain, for rows whose own chain is not known. */
  inlineId: string | null;
}

export type ClaudeFold = Fold<Notes>;

/** One line of work: the file's own session, or a sub-agent whose rows stand in it. */
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

/** Ids come from a file, and one of them may be called like a property every object has. */
export function inlineKey(id: string): string {
  return `=${id}`;
}

/** Adds to a list that keeps only its newest. */
export function pushBounded<T>(list: T[], item: T, max: number): void {
  list.push(item);
  if (list.length > max) list.splice(0, list.length - max);
}
