import type { Ending, SessionFacts, Tokens } from "../../facts.ts";
import type { Fold } from "../../lines/row-reader.ts";

export interface LineNotes {
  open: OpenCall[];
  /** Spawn calls that the session may still be waiting for. */
  unanswered: string[];
  /** The usage of the last few answers. The rows of one answer repeat its usage. */
  recent: (Tokens & { readonly id: string })[];
  messageId: string | null;
  customTitle: string | null;
  /** The ending before a command that the agent ran by itself. Reading the command's output restores it. */
  before: Ending | null;
  steps: Step[];
  /**
   * The newest prompts, which reach further back than `steps`. Each is one line: parent id, own id, offset,
   * and the ref of the entry before it. All are in one string, because it is copied with every state.
   */
  turns: string;
  lastRef: string | null;
  /** Refs of the notices that were already given. */
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
  /** The newest entry after this row was folded. */
  readonly ref: string | null;
  readonly kind: "prompt" | "answer" | "result" | "lateError" | "other";
  readonly at: number | null;
  readonly messageId: string | null;
  readonly offset: number;
}

export interface Notes {
  readonly own: LineNotes;
  /** By `inlineKey`. */
  readonly inline: Record<string, LineNotes>;
  /** The newest sidechain, for rows whose own sidechain is unknown. */
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

/** Avoids the names of built-in properties: ids come from a file and may be any text. */
export function inlineKey(id: string): string {
  return `=${id}`;
}
