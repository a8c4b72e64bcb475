import type { EntryAuthor, EntryKind, HistoryProblem, HistoryScan } from "../../contract/index.ts";
import type { HistoryAsked, HistoryKnown, HistoryRecord, SessionRecord } from "./record.ts";
import type { Visible } from "../../domain/permission.ts";

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
  /** Returns the folders that sessions worked in, with the number of sessions per agent, origin and level. */
  folders(visible: Visible): Promise<FolderCount[]>;
}

export type HistoryStatus = Pick<
  HistoryRecord,
  "key" | "agentId" | "sessionId" | "kind" | "status" | "missing"
>;

export interface FolderCount {
  readonly cwd: string;
  readonly agent: string;
  readonly origin: SessionRecord["origin"];
  readonly isBelow: boolean;
  readonly count: number;
  readonly atWork: number;
  readonly lastActivityAt: number;
}

/**
 * An entry from a file. `body` is JSON, already capped and redacted. `ref` is a number from 0 to 2^53, or
 * negative for an entry that is not in the file itself.
 */
export interface ImportedEntry {
  readonly ref: number;
  readonly author: EntryAuthor;
  readonly kind: EntryKind;
  readonly body: string;
  readonly isSubagent: boolean;
  readonly at: number;
}

export type NewHistory = Omit<
  HistoryRecord,
  "no" | "readStamp" | "readBytes" | "missing" | "badCount" | "bad" | "goneAt" | "place"
>;

export interface HistoryWrites {
  /**
   * Returns the row's number. Replaces a row of kind `empty` or `excluded`; any other existing row stays
   * unchanged.
   */
  add(record: NewHistory): Promise<number>;
  patch(no: number, patch: Partial<HistoryRecord>): Promise<void>;
  /**
   * Appends the entries whose refs the session does not have yet; `first` is the index of the first one. With
   * `isLive` they are searchable from the commit on, otherwise a little later.
   */
  append(
    at: { no: number; sessionId: string; isLive: boolean },
    entries: readonly ImportedEntry[],
  ): Promise<{ first: number; appended: ImportedEntry[] }>;
}

/** The progress of a scan. `problems` are files that could not even be listed, so they have no row. */
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
