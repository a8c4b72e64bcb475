import type { EntryAuthor, EntryKind, HistoryProblem, HistoryScan } from "../../contract/index.ts";
import type { HistoryAsked, HistoryKnown, HistoryRecord, SessionRecord } from "./record.ts";
import type { Visible } from "../../domain/permission.ts";

export interface HistoryReads {
  byKey(key: string): Promise<HistoryRecord | null>;
  bySession(sessionId: string): Promise<HistoryRecord | null>;
  /** By number. */
  ofFamily(familyKey: string, page: { after: number; limit: number }): Promise<HistoryRecord[]>;
  /** Only what is known of the sub-agents of a family, without what a reader needs. */
  statusesOf(familyKey: string): Promise<HistoryStatus[]>;
  /** What a scan has to compare with, by number. */
  known(node: string, page: { after: number; limit: number }): Promise<HistoryKnown[]>;
  /** The refs of the entries a session has, in ascending order; those of what we said ourselves are left out. */
  refs(no: number, page: { after: number; limit: number }): Promise<number[]>;
  /** The key of the first session at the top of a tree that has an entry with this ref. */
  ownerOfRef(at: { node: string; format: string; ref: number }): Promise<string | null>;
  /** Those that could not be read, or not all of them, by path. */
  problems(node: string, limit: number): Promise<HistoryRecord[]>;
  problemCount(node: string): Promise<number>;
  /** The folders sessions worked in, with how many of which kind. */
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
 * An entry from a file: its body is JSON, capped and redacted, and its ref a number between 0 and 2^53, or a
 * negative one for what the file does not say itself.
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
  /** Answers its number. Takes the place of one that was left out; any other stays as it is. */
  add(record: NewHistory): Promise<number>;
  patch(no: number, patch: Partial<HistoryRecord>): Promise<void>;
  /**
   * Appends those entries that the session has not, by ref; `first` is the index of the first. Live ones
   * can be searched for from the commit on, others a little later.
   */
  append(
    at: { no: number; sessionId: string; isLive: boolean },
    entries: readonly ImportedEntry[],
  ): Promise<{ first: number; appended: ImportedEntry[] }>;
}

/** With what could not even be listed, and so has no row of its own. */
export interface HistoryProgress {
  readonly scan: HistoryScan;
  readonly problems: readonly HistoryProblem[];
}

/** What was asked about agents' own files on this node, and how far that has come. */
export interface Imports {
  asked(): Promise<HistoryAsked | null>;
  /** Durable first, then whoever listens is told. */
  ask(asked: HistoryAsked): Promise<void>;
  scan(): Promise<HistoryProgress | null>;
  publish(progress: HistoryProgress): Promise<void>;
  onAsk(listener: () => void): () => void;
}
