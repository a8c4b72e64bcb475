import type { Ending, SessionFacts, Tokens } from "../../facts.ts";
import type { Fold } from "../../lines/row-reader.ts";

export interface LineNotes {
  open: OpenCall[];
  /** Spawn calls that the session may still be waiting for. */
  unanswered: string[];
  /** The usage of the last few answers. Several rows repeat an answer's usage, which must count once. */
  recent: (Tokens & { readonly id: string })[];
  messageId: string | null;
  customTitle: string | null;
  /** `facts.ending` before a command that Claude Code ran itself. The command's output row restores it. */
  before: Ending | null;
  steps: Step[];
  /**
   * The newest prompts, which reach further back than `steps`. Each is one line: parent id, own id, offset,
   * and the ref of the entry before it. All are in one string, because a string is cheap to copy with every
   * state.
   */
  turns: string;
  lastRef: string | null;
  /** Refs of the notices that were already recorded. */
  notices: string[];
}

export interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly command: string | null;
}

/** One row of the graph, with the fields that are needed to recognise a rewind. */
export interface Step {
  readonly id: string;
  /** The ref of the last entry that this row or an earlier one added. */
  readonly ref: string | null;
  readonly kind: "prompt" | "answer" | "result" | "lateError" | "other";
  readonly at: number | null;
  readonly messageId: string | null;
  readonly offset: number;
}

export interface Notes {
  readonly own: LineNotes;
  /** The notes of each sub-agent in this file. The keys are made by `inlineKey`. */
  readonly inline: Record<string, LineNotes>;
  /** The newest sidechain. A row whose own sidechain cannot be found is added to it. */
  inlineId: string | null;
}

export type ClaudeFold = Fold<Notes>;

/** One line of work: the file's own session, or a sub-agent in the same file. */
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

/** Adds a prefix, so that an id from a file is never the name of a built-in property. */
export function inlineKey(id: string): string {
  return `=${id}`;
}
