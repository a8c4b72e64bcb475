import type { IndexedSession } from "./files/indexes.ts";
import type { Fold } from "../../lines/row-reader.ts";

export interface Notes {
  /** Whether the file's first record was read. Only that record says whose file it is. */
  hasMeta: boolean;
  /** When the session began. Copied rows that kept their timestamps are older. */
  metaAt: number | null;
  /** The path that names this session among the agents of its tree. Only newer Codex versions have it. */
  path: string;
  /** The session's own rows begin at this ordinal. Rows with a smaller one belong to its parent. */
  ownFromOrdinal: number | null;
  /** Set when the session continues another file: rows with a smaller ordinal belong to that file. */
  baseEndOrdinal: number | null;
  /** Set while rows copied from another session are read. A sub-agent's session leaves these rows out. */
  copied: "left out" | "kept" | null;
  /** A copied row older than the session was found. It proves that copied rows kept their timestamps. */
  hasOlder: boolean;
  /** The offset at which the session's own rows begin, after the copied rows. */
  ownFromOffset: number | null;
  isFork: boolean;
  /** Whether the file records when turns begin and end. Files of old versions do not. */
  hasTurns: boolean;
  /** Null when rows were skipped, because it is then unknown whether a turn is open. */
  turnOpen: boolean | null;
  turnId: string | null;
  turnError: string | null;
  turnHasPrompt: boolean;
  /** A row with the role `user` that is held back. The next rows show whether a person wrote it. */
  held: PendingPrompt | null;
  /** Prompts are recorded twice. This says which record of the last prompt is still to come, and its key. */
  awaited: { readonly what: "item" | "event"; readonly key: string } | null;
  open: OpenCall[];
  /** The newest call that ran code which may call the agent's tools (code mode). */
  cellId: string | null;
  unanswered: string[];
  /** The ref of the entry before each turn, newest turn last. */
  turns: (string | null)[];
  /** Older turns were dropped from `turns`. */
  turnsCut: boolean;
  lastRef: string | null;
  /** The usage that a forked session inherited. It is subtracted from the running total. */
  base: Tokens | null;
  /** The file records the usage of each answer, so the running total is not needed. */
  hasRecords: boolean;
}

export interface PendingPrompt {
  readonly ref: string;
  readonly offset: number;
  readonly text: string;
  readonly key: string;
  readonly at: number | null;
  /** The text is worded like injected text. Used only if no other record tells whether a person wrote it. */
  readonly looksInjected: boolean;
}

export interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly command: string | null;
  readonly targets: readonly string[];
  /** The exit code from the record of the command's end. That record comes before the command's result. */
  exitCode: number | null;
  ok: boolean | null;
}

export interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

export type CodexFold = Fold<Notes>;

/** Facts known before a file is read. If only its end is read, they include facts from its first rows. */
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
