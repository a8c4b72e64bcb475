import type { EntryAuthor, EntryBody, EntryKind } from "../contract/index.ts";
import type { SessionFacts } from "./facts.ts";
import type { ProcessProbe } from "../system/process-probe.ts";

export type * from "./facts.ts";
export type * from "../system/process-probe.ts";

export type HistoryFormat = "claude-code" | "codex" | "opencode" | "gemini";

/**
 * Reads the files that one kind of agent left on disk. A reader is stateless: everything it needs to continue
 * later is in the `ReadState` that it returns.
 *
 * An implementer must never write, create, lock or touch anything below the agent's folders, never hold a
 * whole file in memory, and never throw because of a file's contents. A bad line is counted in `bad`. If a
 * file cannot be read at all, `discover` and `glance` report a `Problem`, and `read` and `tail` reject with
 * the system's error. They reject for no other reason. A reader never derives a state from a file's age.
 * Where a record and a path give the same fact, it uses the record. It only collects facts; `family.ts` and
 * `status.ts` judge them.
 *
 * A caller may rely on this: reading a file in any number of pieces, cut at any byte, gives the same entries
 * and facts as reading it at once (`reader.spec.ts` proves it).
 */
export interface HistoryReader {
  readonly format: HistoryFormat;
  readonly agent: string;
  /** The folders that may contain this agent's sessions. They need not exist. */
  roots(userHome: UserHome): string[];
  /**
   * Finds every session and sub-agent below a root, in any order. Uses only names, sizes, sidecars and the
   * first bytes of a file. A root that does not exist has no sessions.
   */
  discover(
    root: string,
    onProblem: (problem: Problem) => void,
    /**
     * Searches only this folder, as returned by `near`. A copied session may then get its original's key,
     * because an original in another folder is not seen.
     */
    folder?: string,
  ): AsyncIterable<FoundSession>;
  /**
   * Returns the folder to search after this file or folder appeared, or null if no session can be there. No
   * other folder has to be searched. For a reader without this method, the whole root is searched.
   */
  near?(root: string, file: string): string | null;
  /**
   * Reads entries and facts from where `state` left off (null: from the beginning), in batches of about a
   * megabyte. Yields at least one batch, even when nothing is new. The caller may stop after any batch.
   */
  read(found: FoundSession, state: ReadState | null, options?: ReadOptions): AsyncIterable<ReadBatch>;
  /** Reads what a list shows, from the file's head and tail only. Counts may be incomplete. */
  glance(found: FoundSession): Promise<Glance>;
  /** Reads the last entries of a file of any size, from its tail only. */
  tail(found: FoundSession, options: TailOptions): Promise<TailPage>;
  /** Lists sessions that a process works on, according to the agent's registry or to open files. */
  live(root: string, probe: ProcessProbe): Promise<LiveSession[]>;
  /**
   * Whether `live` lists every process that works on this session. If it does, a session that is not listed
   * has no process. A reader without this method makes no such promise.
   */
  listsLive?(facts: SessionFacts): boolean;
}

/** The user's home and environment. Tests pass another home. */
export interface UserHome {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A session or sub-agent on disk, before it is read. Plain JSON. */
export interface FoundSession {
  readonly format: HistoryFormat;
  /** Unique among all readers; stays the same when the file grows, is archived or compressed. */
  readonly key: string;
  readonly root: string;
  /** The file to read, or the database that contains the session. */
  readonly path: string;
  /** The agent's own id. */
  readonly id: string;
  /** The root session's key, if the location on disk shows it. A root session has its own key here. */
  readonly rootKey: string | null;
  readonly isSubagent: boolean;
  readonly sizeBytes: number;
  /** When the file was last written, for sorting only. Never evidence of a state. */
  readonly changedAt: number;
  /** Changes whenever there may be something new to read, in the file or beside it. */
  readonly stamp: string;
  /** Private to the reader: what it needs to find the session again, such as sidecars or a row id. */
  readonly extra: Readonly<Record<string, string | number | boolean | null>>;
}

/** Where reading stopped and which facts are known. Plain JSON: store it and pass it back unchanged. */
export interface ReadState {
  /** The reader's version. A state with another version is ignored. */
  readonly version: number;
  readonly position: unknown;
  readonly facts: SessionFacts;
  /** Sub-agents whose rows are inside this file, by their id. */
  readonly inline: Readonly<Record<string, SessionFacts>>;
  /** Private notes of the reader. */
  readonly notes: unknown;
}

export interface ReadOptions {
  /** A longer line is skipped and counted as bad. Default 32 MiB. */
  readonly lineBytesMax?: number;
  /** A longer text in an entry is cut and marked as cut. Default 256 Ki characters. */
  readonly textMax?: number;
  /** How much of the file is read at once. Default 512 KiB. */
  readonly chunkBytes?: number;
  readonly signal?: AbortSignal;
}

export interface ReadBatch {
  /**
   * The file was replaced, shortened or rewritten since the state was made, or the reader's version has
   * changed. Reading began again, so everything read before is void. Can be true only in the first batch.
   */
  readonly reset: boolean;
  readonly entries: readonly HistoryEntry[];
  /** Earlier entries that a rewind or rollback removed from the conversation. */
  readonly leftBehind: readonly LeftBehind[];
  readonly bad: readonly BadLine[];
  readonly badCount: number;
  /**
   * Returns the state to continue from. Call it before the next batch, and only if needed: it can cost more
   * than reading the batch.
   */
  state(): ReadState;
  /** For a progress bar. */
  readonly bytesRead: number;
}

/**
 * One entry of a transcript. `ref` is unique in its session: two entries with the same ref are the same
 * entry. If the file shows when an entry is final, a reader holds the entry back until then. A page never
 * contains an entry twice.
 */
export interface HistoryEntry {
  readonly ref: string;
  /**
   * The ref of an entry that was already given and that this one replaces, because the agent rewrote it.
   * Stored entries never change, so the rewritten entry gets a new ref.
   */
  readonly replaces?: string;
  /** The sub-agent that the entry belongs to (see `ReadState.inline`); null for the file's own session. */
  readonly inlineId: string | null;
  readonly author: EntryAuthor;
  readonly kind: EntryKind;
  readonly body: EntryBody;
  readonly isSubagent: boolean;
  readonly at: number;
  /** Where the entry's row begins in the file. Set only in pages of `tail`, for formats with rows. */
  readonly offset?: number;
}

/** All entries after `afterRef` and before `beforeRef` are no longer part of the conversation. */
export interface LeftBehind {
  readonly inlineId: string | null;
  /** The last entry before the removed ones; null if the session's first entry was removed. */
  readonly afterRef: string | null;
  /** The first entry after the removed ones; null when there is none yet. */
  readonly beforeRef: string | null;
  readonly reason: string;
}

export interface BadLine {
  /** Counted from 1; null where the format has no lines. */
  readonly line: number | null;
  readonly byteOffset: number | null;
  readonly reason: string;
}

/** A file or folder that could not be read. `kinfold doctor` reports it. All other files are still read. */
export interface Problem {
  readonly format: HistoryFormat;
  readonly path: string;
  readonly reason: string;
}

/** The facts from a file's head and tail. A value that is in neither of them is null. */
export interface Glance {
  readonly facts: SessionFacts;
  /** Whether head and tail cover the whole file, so that counts and calls are complete. */
  readonly whole: boolean;
  readonly problem: string | null;
}

export interface TailOptions {
  readonly entriesMax: number;
  /** Pass a page's `beforeOffset` to get the page before it. If absent, the file's last page is returned. */
  readonly beforeOffset?: number;
  readonly textMax?: number;
}

export interface TailPage {
  readonly entries: readonly HistoryEntry[];
  /** Pass this value to `tail` to get the preceding page. Null if this is the first page. */
  readonly beforeOffset: number | null;
  readonly badCount: number;
}

/** A session that a process is reported to be working on. */
export interface LiveSession {
  readonly id: string;
  readonly pid: number;
  /** When the process started. Work that stopped before this time was done by an earlier process. */
  readonly startedAt: number | null;
  /** Whether this process, not another with the same pid, is alive. Null where this cannot be determined. */
  readonly alive: boolean | null;
  /** The state that the agent reports about itself; null where it reports none. */
  readonly doing: "busy" | "idle" | "waiting" | null;
  /** The source of the report, shown as evidence. */
  readonly how: string;
}
