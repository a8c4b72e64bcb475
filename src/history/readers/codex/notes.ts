import type { IndexedSession } from "./files/indexes.ts";
import type { Fold } from "../../lines/row-reader.ts";

export interface Notes {
  /** Whether the file's first record was read. Only that record says whose file it is. */
  hasMeta: boolean;
  /** When the session began. Copied rows that kept their timestamps are older. */
  metaAt: number | null;
  /** The session's path among the agents of its tree, as newer versions name them. */
  path: string;
  /** Rows with a smaller ordinal belong to its parent. */
  ownFromOrdinal: number | null;
  /** Set when the session continues another file: rows with a smaller ordinal belong to that file. */
  baseEndOrdinal: number | null;
  /** Set while rows copied from another session are being read. A sub-agent leaves them out. */
  copied: "left out" | "kept" | null;
  /** A copied row was older than the session, so copied rows kept their timestamps. */
  hasOlder: boolean;
  /** Where its own rows begin, after the copied ones. */
  ownFromOffset: number | null;
  isFork: boolean;
  /** Whether the file records when turns begin and end; old versions do not. */
  hasTurns: boolean;
  /** Null after rows were skipped: then it is unknown. */
  turnOpen: boolean | null;
  turnId: string | null;
  turnError: string | null;
  turnHasPrompt: boolean;
  /** A row with the role `user`. The next rows show whether a person wrote it. */
  held: PendingPrompt | null;
  /** The last prompt will appear in the file a second time, in this form. */
  awaited: { readonly what: "item" | "event"; readonly key: string } | null;
  open: OpenCall[];
  /** The newest call that ran code which may call the agent's tools (code mode). */
  cellId: string | null;
  unanswered: string[];
  /** For each turn, newest last, the entry before it. */
  turns: (string | null)[];
  /** Older turns were dropped from `turns`. */
  turnsCut: boolean;
  lastRef: string | null;
  /** The usage that a forked session inherited: it is subtracted from the running total. */
  base: Tokens | null;
  /** Usage is recorded for each answer, so the running total is not needed. */
  hasRecords: boolean;
}

export interface PendingPrompt {
  readonly ref: string;
  readonly offset: number;
  readonly text: string;
  readonly key: string;
  readonly at: number | null;
  /** The wording looks like injected text. Used only when nothing else decides. */
  readonly looksInjected: boolean;
}

export interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly command: string | null;
  readonly targets: readonly string[];
  /** From the record of the command's end, which comes before its result. */
  exitCode: number | null;
  ok: boolean | null;
}

export interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

export type CodexFold = Fold<Notes>;

/** What is known about a session before its file is read, and from the file's head for a page from its tail. */
export type Extra = Pick<IndexedSession, "title" | "closed" | "parentId"> &
  Readonly<Pick<Notes, "ownFromOrdinal" | "ownFromOffset"> & { path: string | null }>;

export const ROOT_PATH = "/root";

export function noNotes(): Notes {
  return {
    hasMeta: false,
    metaAt: null,
    path: ROOT_PATH,
    ownFromOrdinal: null,
    baseEndOrdinal: null,
    copied: null,
    hasOlder: false,
    ownFromOffset: null,
    isFork: false,
    hasTurns: false,
    turnOpen: false,
    turnId: null,
    turnError: null,
    turnHasPrompt: false,
    held: null,
    awaited: null,
    open: [],
    cellId: null,
    unanswered: [],
    turns: [],
    turnsCut: false,
    lastRef: null,
    base: null,
    hasRecords: false,
  };
}
