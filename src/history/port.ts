import type { EntryAuthor, EntryBody, EntryKind } from "../contract/index.ts";
import type { SessionFacts } from "./facts.ts";
import type { ProcessProbe } from "../system/process-probe.ts";

export type * from "./facts.ts";
export type * from "../system/process-probe.ts";

export type HistoryFormat = "claude-code" | "codex" | "opencode" | "gemini";

/**
 * Reads what one kind of agent left on disk. A reader is stateless: everything it needs to continue later is
 * in the `ReadState` that it hands out, which is plain JSON.
 *
 * An implementer must never write, create, lock or touch anything below the agent's own folders (files are
 * opened for reading only; a database is opened so that no file appears beside it), never hold a whole file
 * in memory, and never throw because of a file's contents. A bad line is counted in `bad`; a file that cannot
 * be read at all is a `Problem` to `discover` and `glance`; `read` and `tail` reject with the system's error
 * when the file cannot be opened, and for no other reason. A reader never derives a state from a file's age,
 * never trusts a path's spelling where a record says the same, and never decides a status: it collects facts,
 * and `family.ts` and `status.ts` judge them.
 *
 * A caller may rely on this: reading a file in any number of pieces, cut at any bytes, gives the same entries
 * in the same order and the same facts as reading it at once (`reader.spec.ts` proves it).
 */
export interface HistoryReader {
  readonly format: HistoryFormat;
  /** The agent's name in Kinfold's table of agents. */
  readonly agent: string;
  /**
   * The folders that contain this agent's sessions, from the environment and the home folder; they may not
   * exist.
   */
  roots(userHome: UserHome): string[];
  /**
   * Finds every session and sub-agent below a root that has something to read, from names, sizes and sidecars
   * only: no transcript is opened. A root that does not exist has none. The order is not fixed.
   */
  discover(
    root: string,
    onProblem: (problem: Problem) => void,
    /**
     * Restricts the search to this folder, as returned by `near`. A copied session may then get the key of
     * its original, because the original is not seen.
     */
    folder?: string,
  ): AsyncIterable<FoundSession>;
  /**
   * Returns the folder that contains everything that may have appeared together with a new file or folder, so
   * that only this folder has to be searched; null when no session can be there. Absent: the whole root has
   * to be searched.
   */
  near?(root: string, file: string): string | null;
  /**
   * Reads entries and facts from where `state` left off (null: from the beginning), in batches of about a
   * megabyte of file. Yields at least one batch, even when nothing is new. The caller may stop after any
   * batch, because each has the state to continue from. A last line without its newline is left for later.
   */
  read(found: FoundSession, state: ReadState | null, options?: ReadOptions): AsyncIterable<ReadBatch>;
  /**
   * Reads what a list shows, from the head and the tail of the file only. Counts and usage are not included.
   */
  glance(found: FoundSession): Promise<Glance>;
  /** Reads the last entries of a file of any size, from its tail only. */
  tail(found: FoundSession, options: TailOptions): Promise<TailPage>;
  /**
   * Lists the sessions below a root that are alive according to the agent's own registry, checked against the
   * running processes.
   */
  live(root: string, probe: ProcessProbe): Promise<LiveSession[]>;
  /**
   * Whether `live` would list a process that works on this session, so that its absence proves that there is
   * no such process. Absent: never.
   */
  listsLive?(facts: SessionFacts): boolean;
}

/** The home folder and environment that a reader searches. Passed in, so that tests can use another home. */
export interface UserHome {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A session or sub-agent as it was found, before it was read. Plain JSON. */
export interface FoundSession {
  readonly format: HistoryFormat;
  /**
   * Identifies the session permanently among everything that all readers find; it stays the same when the
   * file grows, is archived or is compressed. Opaque to callers.
   */
  readonly key: string;
  readonly root: string;
  /** The file to read (for a session in a database: the database). */
  readonly path: string;
  /** The agent's own id. */
  readonly id: string;
  /** The key of the root session, if the location on disk shows it; a root session has its own key here. */
  readonly rootKey: string | null;
  readonly isSubagent: boolean;
  readonly sizeBytes: number;
  /** When it was last written, for sorting a list. Never evidence of a state. */
  readonly changedAt: number;
  /** Changes whenever there may be something new to read, in the file or beside it. */
  readonly stamp: string;
  /**
   * What else the reader needs in order to find the session again (sidecars, a row id). Private to the
   * reader.
   */
  readonly extra: Readonly<Record<string, string | number | boolean | null>>;
}

/** Where reading stopped and which facts are known. Plain JSON, to be stored and handed back unchanged. */
export interface ReadState {
  /** The reader's version: a state with another version is ignored. */
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
   * The file is not the one that the state describes (replaced, shortened, rewritten): reading began again,
   * and everything known about the file is void. Only ever true in the first batch.
   */
  readonly reset: boolean;
  readonly entries: readonly HistoryEntry[];
  /** Earlier entries, by ref, that the agent itself has since left behind (a rewind, a rollback). */
  readonly leftBehind: readonly LeftBehind[];
  /** Lines of this batch that could not be used. */
  readonly bad: readonly BadLine[];
  readonly badCount: number;
  /**
   * Returns the state to continue from. Call it before asking for the next batch, and only if needed: making
   * the state can cost more than reading the batch.
   */
  state(): ReadState;
  /** How far the file has been read, for a progress bar. */
  readonly bytesRead: number;
}

/**
 * One entry of a transcript in the contract's terms. `ref` is the agent's own name for it and unique in its
 * session; a second entry with the same ref is the same entry. A reader holds an entry back until it is
 * final, wherever the file shows when it is final, and never gives an entry twice on one page.
 */
export interface HistoryEntry {
  readonly ref: string;
  /**
   * Set when the agent rewrote an entry with another text after it had been given: the ref of that earlier
   * entry. Stored entries never change, so the rewritten one has a new ref.
   */
  readonly replaces?: string;
  /**
   * The sub-agent in the same file that the entry belongs to (`ReadState.inline`); null for the file's own
   * session.
   */
  readonly inlineId: string | null;
  readonly author: EntryAuthor;
  readonly kind: EntryKind;
  readonly body: EntryBody;
  readonly isSubagent: boolean;
  readonly at: number;
  /** Where the entry's row begins in the file; only on pages, and only for formats with rows. */
  readonly offset?: number;
}

/** All entries after `afterRef` and before `beforeRef` are no longer on the agent's path. */
export interface LeftBehind {
  readonly inlineId: string | null;
  /** Null: from the beginning of the session. */
  readonly afterRef: string | null;
  /** The first entry that is on the path again; null when there is none yet. */
  readonly beforeRef: string | null;
  readonly reason: string;
}

export interface BadLine {
  /** Counted from 1; null where the format has no lines. */
  readonly line: number | null;
  readonly byteOffset: number | null;
  readonly reason: string;
}

/** A file or folder that could not be read at all. `kinfold doctor` reports it; everything else continues. */
export interface Problem {
  readonly format: HistoryFormat;
  readonly path: string;
  readonly reason: string;
}

/** Enough for a list. A value that is not in the head or the tail is null, never wrong. */
export interface Glance {
  readonly facts: SessionFacts;
  /** Whether head and tail cover the whole file, so that counts and calls are complete. */
  readonly whole: boolean;
  readonly problem: string | null;
}

export interface TailOptions {
  readonly entriesMax: number;
  /** Reads backwards from this byte, as given by the page that follows; absent for the last page. */
  readonly beforeOffset?: number;
  readonly textMax?: number;
}

export interface TailPage {
  /** In file order. */
  readonly entries: readonly HistoryEntry[];
  /** Where this page begins: pass it to get the preceding page. Null at the beginning of the file. */
  readonly beforeOffset: number | null;
  readonly badCount: number;
}

/** A session that a process is reported to be working on. */
export interface LiveSession {
  /** The agent's own id of the root session. */
  readonly id: string;
  readonly pid: number;
  /** When the process started; work that stopped before then belongs to an earlier process. */
  readonly startedAt: number | null;
  /** Whether exactly this process is alive; null where that cannot be determined. */
  readonly alive: boolean | null;
  /** The state that the agent reports about itself; null where it reports none. */
  readonly doing: "busy" | "idle" | "waiting" | null;
  /** The source in words, shown as evidence. */
  readonly how: string;
}
