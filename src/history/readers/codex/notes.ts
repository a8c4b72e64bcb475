import type { Fold } from "../../lines/row-reader.ts";

/** What the next row has to know about those before it. */
export interface Notes {
  /** Whether the file's first record was read; it alone says whose file this is. */
  hasMeta: boolean;
  /** When the session began, which is when copied rows end where their times were kept. */
  metaAt: number | null;
  /** Its place among the agents of its tree, as newer versions name them. */
  path: string;
  /** Rows with a smaller ordinal are its parent's. */
  ownFromOrdinal: number | null;
  /** It goes on from another file: rows with a smaller ordinal are that one's. */
  baseEndOrdinal: number | null;
  /** The rows copied from another session are still coming: a sub-agent leaves them out. */
  copied: "left out" | "kept" | null;
  /** A copied row was older than the session, so copied rows kept their times. */
  hasOlder: boolean;
  /** Where its own rows began, after copied ones. */
  ownFromOffset: number | null;
  isFork: boolean;
  /** Whether it writes down the beginnings and ends of its turns: old versions do not. */
  hasTurns: boolean;
  /** Null when it is not known, after rows were left out. */
  turnOpen: boolean | null;
  turnId: string | null;
  turnError: string | null;
  turnHasPrompt: boolean;
  /** A row in the user's name of which the next ones say who wrote it. */
  held: PendingPrompt | null;
  /** The prompt that was given last stands in the file once more, as this. */
  awaited: { readonly what: "item" | "event"; readonly key: string } | null;
  open: OpenCall[];
  /** The newest piece of code in which the agent calls its tools. */
  cellId: string | null;
  /** Spawn calls without a result that the session may still be waiting for. */
  unanswered: string[];
  /** For each turn, newest last, the entry before it. */
  turns: (string | null)[];
  /** Older turns were forgotten. */
  turnsCut: boolean;
  lastRef: string | null;
  /** What the session it was forked from had used. */
  base: Tokens | null;
  /** Each answer's use is written down by itself, so the running total is not needed. */
  hasRecords: boolean;
}

export interface PendingPrompt {
  readonly ref: string;
  readonly offset: number;
  readonly text: string;
  readonly key: string;
  readonly at: number | null;
  /** How it looks by its wording, which counts only when nothing else tells. */
  readonly looksInjected: boolean;
}

export interface OpenCall {
  readonly id: string;
  readonly tool: string;
  readonly command: string | null;
  /** The sub-agents it is about. */
  readonly targets: readonly string[];
  /** From the record of its end, which comes before its result. */
  exitCode: number | null;
  ok: boolean | null;
}

export interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

export type CodexFold = Fold<Notes>;

/** What is known of a session before its file is read. */
export interface Extra extends Readonly<Record<string, string | number | boolean | null>> {
  readonly title: string | null;
  /** The agent's own index says that its parent closed it. */
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

/** Adds to a list that keeps only its newest; answers whether one was dropped. */
export function pushBounded<T>(list: T[], item: T, max: number): boolean {
  list.push(item);
  if (list.length <= max) return false;
  list.splice(0, list.length - max);
  return true;
}
