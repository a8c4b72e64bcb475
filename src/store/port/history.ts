import type { AgentStatus, HistoryProblem, HistoryScan } from "../../contract/index.ts";
import { flag, heldJson, json, jsonList, maybe, number, prose, type RecordOf, word } from "../column.ts";
import type { EntryRecord, SessionRecord } from "./record.ts";
import type { Visible } from "../../domain/permission.ts";

/**
 * A session or sub-agent that a reader found on disk. Its `kind` is `imported` if it has a session in the
 * store. It is `ours` if Kinfold runs it or it is attached; then only its facts are kept. The other kinds are
 * not imported: a person excluded it (`excluded`), it is the agent's own bookkeeping (`internal`), or it has
 * no content yet (`empty`).
 */
export const HISTORY = {
  no: number(),
  key: word(),
  node: word(),
  agent: word(),
  /** The id that the agent gave to the session or sub-agent. */
  agentId: word(),
  format: word(),
  path: word(),
  /** The reader's description of the file. The reader gets it back unchanged. */
  found: heldJson<Record<string, unknown>>(),
  /** The key of the session at the top of its family, even if that session's file is missing. */
  familyKey: word(),
  /** For a sub-agent whose rows are in another session's file: the key of that file. */
  hostKey: maybe(word()),
  sessionId: word(),
  rootId: word(),
  kind: word<"imported" | "ours" | "excluded" | "internal" | "empty">(),
  stamp: word(),
  /** The stamp that the file had when it was last read; null if only its head and tail were read. */
  readStamp: maybe(word()),
  sizeBytes: number(),
  readBytes: number(),
  /** Set only for a sub-agent. */
  status: maybe(json<AgentStatus>()),
  /** Sub-agents that tool calls in this file started and that have no file of their own. */
  missing: maybe(jsonList<AgentStatus>()),
  badCount: number(),
  bad: maybe(jsonList<{ line: number | null; byteOffset: number | null; reason: string }>()),
  problem: maybe(prose()),
  changedAt: number(),
  goneAt: maybe(number()),
  /** The facts that the reader found; opaque here. */
  facts: maybe(heldJson<Record<string, unknown>>()),
  /** The position at which the reader continues; opaque here. */
  place: maybe(heldJson<Record<string, unknown>>()),
};
export type HistoryRecord = RecordOf<typeof HISTORY>;

/** The fields that a scan compares with the files. */
export const KNOWN_FIELDS = [
  "no",
  "key",
  "agentId",
  "format",
  "path",
  "familyKey",
  "hostKey",
  "sessionId",
  "rootId",
  "kind",
  "stamp",
  "readStamp",
  "sizeBytes",
  "readBytes",
  "goneAt",
] as const satisfies (keyof HistoryRecord)[];

/**
 * A row that a scan compares with the files. The fields of `OF_SESSION` are null if the row has no session.
 * `state` is the state in the session's evidence.
 */
export type HistoryKnown = Pick<HistoryRecord, (typeof KNOWN_FIELDS)[number]> & RecordOf<typeof OF_SESSION>;
export const OF_SESSION = {
  state: maybe(word()),
  depth: maybe(number()),
  parentId: maybe(word()),
  cwd: maybe(word()),
  scope: maybe(word()),
};

/** A request to read what agents left on disk. */
export interface HistoryAsked {
  exclude: string[];
  /** Incremented to request a complete new scan. */
  count: number;
  at: number;
}

export interface HistoryReads {
  byKey(key: string): Promise<HistoryRecord | null>;
  bySession(sessionId: string): Promise<HistoryRecord | null>;
  /** Sorted by `no`. */
  ofFamily(familyKey: string, page: { after: number; limit: number }): Promise<HistoryRecord[]>;
  /** Returns the status of every member of a family, without the reader's data. */
  statusesOf(familyKey: string): Promise<HistoryStatus[]>;
  /** Returns the rows that a scan compares with the node's files, sorted by `no`. */
  known(node: string, page: { after: number; limit: number }): Promise<HistoryKnown[]>;
  /** Returns the refs of a session's entries that are greater than `after`, ascending. */
  refs(no: number, page: { after: number; limit: number }): Promise<number[]>;
  /** Returns the key of the first root session that has an entry with this ref. */
  ownerOfRef(at: { node: string; format: string; ref: number }): Promise<string | null>;
  /** Returns the sessions that could not be read completely, sorted by path. */
  problems(node: string, limit: number): Promise<HistoryRecord[]>;
  problemCount(node: string): Promise<number>;
  /** Returns the sessions' folders, with counts per agent and origin, separate for roots and children. */
  folders(visible: Visible): Promise<FolderCount[]>;
}

export type HistoryStatus = Pick<
  HistoryRecord,
  "key" | "agentId" | "sessionId" | "kind" | "status" | "missing"
>;

export const FOLDER_COUNT = {
  cwd: word(),
  agent: word(),
  origin: word<SessionRecord["origin"]>(),
  isBelow: flag(),
  count: number(),
  lastActivityAt: number(),
  atWork: number(),
};
export type FolderCount = RecordOf<typeof FOLDER_COUNT>;

/**
 * An entry from a file. `body` is JSON, already capped and redacted. `ref` identifies the entry in its
 * session: a number from 0 to 2^53, or a negative one if the entry is not in the file itself.
 */
export interface ImportedEntry extends Readonly<Pick<EntryRecord, "author" | "kind" | "isSubagent" | "at">> {
  readonly ref: number;
  readonly body: string;
}

export type NewHistory = Omit<
  HistoryRecord,
  "no" | "readStamp" | "readBytes" | "missing" | "badCount" | "bad" | "goneAt" | "place"
>;

export interface HistoryWrites {
  /** Adds a row and returns its number. Replaces an `empty` or `excluded` row, but no other existing row. */
  add(record: NewHistory): Promise<number>;
  patch(no: number, patch: Partial<HistoryRecord>): Promise<void>;
  /**
   * Appends the entries whose refs the session does not have yet. `first` is the index of the first appended
   * entry. With `isLive` the entries are searchable from the commit on, otherwise a little later.
   */
  append(
    at: { no: number; sessionId: string; isLive: boolean },
    entries: readonly ImportedEntry[],
  ): Promise<{ first: number; appended: ImportedEntry[] }>;
}

/** The progress of a scan. `problems` has the files that could not be listed and so have no row. */
export interface HistoryProgress {
  readonly scan: HistoryScan;
  readonly problems: readonly HistoryProblem[];
}

export interface Imports {
  asked(): Promise<HistoryAsked | null>;
  /** Stores the request, then notifies the listeners. */
  ask(asked: HistoryAsked): Promise<void>;
  scan(): Promise<HistoryProgress | null>;
  publish(progress: HistoryProgress): Promise<void>;
  onAsk(listener: () => void): () => void;
}
