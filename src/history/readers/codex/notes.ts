import type { Fold } from "../../lines/row-reader.ts";

/** Notes that the reader keeps from row to row. */
export interface Notes {
  /** Whether the file's first record was read; it alone says whose file this is. */
  hasMeta: boolean;
  /** When the session began. Copied rows that kept their timestamps are older. */
  metaAt: number | null;
  /** The session's path among the agents of its tree, as newer versions name them. */
  path: string;
  /** Rows with a smaller ordinal belong to its parent. */
  ownFromOrdinal: number | null;
  /** Set when the session continues another file: rows with a smaller ordinal belong to that file. */
  baseEndOrdinal: number | null;
  /** Not null while rows copied from another session are being read; a sub-agent leaves them out. */
  copied: "left out" | "kept" | null;
  /** A copied row was older than the session, so copied rows kept their timestamps. */
  hasOlder: boolean;
  /** Where its own rows begin, after the copied ones. */
  ownFromOffset: number | null;
  isFork: boolean;
  /** Whether the file records the beginnings and ends of turns; old versions do not. */
  hasTurns: boolean;
  /** Null when unknown, after rows were skipped. */
  turnOpen: boolean | null;
  turnId: string | null;
  turnError: string | null;
  turnHasPrompt: boolean;
  /** A row in the user's name; the next rows show whether a person wrote it. */
  held: PendingPrompt | null;
  /** The last prompt appears in the file a second time, in this form. */
  awaited: { readonly what: "item" | "event"; readonly key: string } | null;
  open: OpenCall[];
  /** The newest piece of code in which the agent calls its tools (code mode). */
  cellId: string | null;
  /** Spawn calls without a result that the session may still be waiting for. */
  unanswered: string[];
  /** For each turn, newest last, the entry before it. */
  turns: (string | null)[];
  /** True when older turns were dropped from the list. */
  turnsCut: boolean;
  lastRef: string | null;
  /** The token usage of the session it was forked from, at the fork. */
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
  /** Whether its wording looks like injected text; used only when nothing else decides. */
  readonly looksInjected: boolean;
}

export interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly command: string | null;
  /** The sub-agents that the call names. */
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

/** The facts known about a session before its file is read. */
export interface Extra extends Readonly<Record<string, string | number | boolean | null>> {
  readonly title: string | null;
  /** Codex's own index says that its parent closed it. */
  readonly closed: boolean;
  readonly parentId: string | null;
  /** From the file's head, for a page from its tail. */
  readonly ownFromOrdinal: number | null;
  readonly ownFromOffset: number | null;
  readonly path: string | null;
}

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

/** Appends to a list and drops the oldest items beyond `max`; returns whether one was dropped. */
export function pushBounded<T>(list: T[], item: T, max: number): boolean {
  list.push(item);
  if (list.length <= max) return false;
  list.splice(0, list.length - max);
  return true;
}
