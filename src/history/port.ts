import type { EntryAuthor, EntryBody, EntryKind } from "../contract/index.ts";
import type { SessionFacts } from "./facts.ts";
import type { ProcessProbe } from "../system/process-probe.ts";

export type * from "./facts.ts";
export type * from "../system/process-probe.ts";

export type HistoryFormat = "claude-code" | "codex" | "opencode" | "gemini";

/**
 * Reads what one kind of agent left on disk. It is stateless: what it needs to go on later is in the
 * `ReadState` it hands out, which is plain JSON.
 *
 * An implementer must never write, create, lock or touch anything below the agent's own folders (files
 * are opened for reading only; a database is opened so that no file appears beside it), never hold a
 * whole file, and never throw because of what a file contains: a bad line is counted in `bad`, a file
 * that cannot be read at all is a `Problem` to `discover` and `glance`; `read` and `tail` reject with the
 * system's own error when it cannot be opened, and for nothing else. It never takes a state from a file's age, never trusts a
 * path's spelling where a record says the same, and never decides a status: it gathers facts, and
 * `family.ts` and `status.ts` judge them.
 *
 * A caller may rely on this: reading a file in any number of pieces, cut at any bytes, gives the same
 * entries in the same order and the same facts as reading it at once (`reader.spec.ts` proves it).
 */
export interface HistoryReader {
  readonly format: HistoryFormat;
  /** The agent's name in our own table of agents. */
  readonly agent: string;
  /** The folders this agent's sessions lie below, from the environment and the home; they may not exist. */
  roots(userHome: UserHome): string[];
  /**
   * Every session and sub-agent below a root that has something to be read, from names, sizes and
   * sidecars only: no transcript is opened. A root that does not exist holds none. The order is not fixed.
   */
  discover(
    root: string,
    onProblem: (problem: Problem) => void,
    /** Only what lies in here, as `near` gave it. A copy of a session that lies elsewhere has that one's key then. */
    folder?: string,
  ): AsyncIterable<FoundSession>;
  /**
   * The folder below which everything lies that may have come with a new file or folder, so that only
   * this is looked through; null where nothing of a session lies there. Absent: all has to be looked at.
   */
  near?(root: string, file: string): string | null;
  /**
   * Entries and facts from where `state` left off (null: from the beginning), in batches of about a
   * megabyte of file. At least one batch comes, also when nothing is new. The caller may stop after any
   * batch: each tells the state to go on from. A last line without its newline is left for later.
   */
  read(found: FoundSession, state: ReadState | null, options?: ReadOptions): AsyncIterable<ReadBatch>;
  /** What a list needs, from the head and the tail of the file only. Counts and usage are not in it. */
  glance(found: FoundSession): Promise<Glance>;
  /** The last entries of a file of any size, from its tail only. */
  tail(found: FoundSession, options: TailOptions): Promise<TailPage>;
  /** What the agent's own registry says is alive below a root, checked against the processes there are. */
  live(root: string, probe: ProcessProbe): Promise<LiveSession[]>;
  /**
   * Whether a process that worked on this session would be in `live`, so that its absence there proves
   * that there is none. Absent: never.
   */
  listsLive?(facts: SessionFacts): boolean;
}

/** The home folder and environment that a reader searches. Passed in, so that tests can use another home. */
export interface UserHome {
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A session or sub-agent as it was found, before anything of it was read. Plain JSON. */
export interface FoundSession {
  readonly format: HistoryFormat;
  /**
   * Names it among everything all readers find, for good: the same after the file has grown, was
   * archived or compressed. Opaque to callers.
   */
  readonly key: string;
  readonly root: string;
  /** The file to be read (for a database: the database). */
  readonly path: string;
  /** The agent's own id. */
  readonly id: string;
  /** The key of the session at the top of its tree, where the place on disk says it; its own when it is that. */
  readonly rootKey: string | null;
  readonly isSubagent: boolean;
  readonly sizeBytes: number;
  /** When it was last written, for sorting a list. Never evidence of a state. */
  readonly changedAt: number;
  /** Changes whenever there may be something new to read, also beside the file itself. */
  readonly stamp: string;
  /** What else the reader needs to find again, its own business: sidecars, a row id. */
  readonly extra: Readonly<Record<string, string | number | boolean | null>>;
}

/** Where reading stopped and what was learnt. Plain JSON, to be stored and handed back unchanged. */
export interface ReadState {
  /** Of the reader: a state with another version is as good as none. */
  readonly version: number;
  readonly position: unknown;
  readonly facts: SessionFacts;
  /** Sub-agents whose rows stand inside this file, by their id. */
  readonly inline: Readonly<Record<string, SessionFacts>>;
  /** The reader's own notes. */
  readonly notes: unknown;
}

export interface ReadOptions {
  /** A longer line is not held: it is counted as bad and skipped. Default 32 MiB. */
  readonly lineBytesMax?: number;
  /** A longer text in an entry is cut, and says so. Default 256 Ki characters. */
  readonly textMax?: number;
  /** How much of the file is taken at once. Default 512 KiB. */
  readonly chunkBytes?: number;
  readonly signal?: AbortSignal;
}

export interface ReadBatch {
  /**
   * The file is not the one the state was about (replaced, shortened, rewritten): reading began anew,
   * and what was known of it is void. Only ever in the first batch.
   */
  readonly reset: boolean;
  readonly entries: readonly HistoryEntry[];
  /** Entries given before, by ref, that the agent itself has since left behind (a rewind, a rollback). */
  readonly leftBehind: readonly LeftBehind[];
  /** Lines of this batch that could not be used. */
  readonly bad: readonly BadLine[];
  readonly badCount: number;
  /** Where to go on from. To be asked before the next batch is: making it costs more than many a batch. */
  state(): ReadState;
  /** How far the file has been read, for a progress bar. */
  readonly bytesRead: number;
}

/**
 * One entry of a transcript in the contract's terms. `ref` is the agent's own name of it and unique in
 * its session; one that comes again is the same entry. A reader holds an entry back until it is final
 * wherever the file lets it know, and gives none twice on one page.
 */
export interface HistoryEntry {
  readonly ref: string;
  /**
   * The agent wrote an entry again, with another text, after it had been given: that one's ref. What is
   * kept is never changed, so this one has a ref of its own.
   */
  readonly replaces?: string;
  /** The sub-agent of the same file that it belongs to (`ReadState.inline`); null for the file's own session. */
  readonly inlineId: string | null;
  readonly author: EntryAuthor;
  readonly kind: EntryKind;
  readonly body: EntryBody;
  readonly isSubagent: boolean;
  readonly at: number;
  /** Where its row begins in the file; only on pages, and only where the format has rows. */
  readonly offset?: number;
}

/** Everything after `afterRef` up to `beforeRef` (exclusive) is no longer on the agent's own path. */
export interface LeftBehind {
  readonly inlineId: string | null;
  /** Null: from the very beginning. */
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

/** Something that could not be read at all. `kinfold doctor` names it; everything else goes on. */
export interface Problem {
  readonly format: HistoryFormat;
  readonly path: string;
  readonly reason: string;
}

/** Enough for a list. What is not in the head or the tail is null, not wrong. */
export interface Glance {
  readonly facts: SessionFacts;
  /** Whether head and tail were the whole file, so that counts and calls are whole too. */
  readonly whole: boolean;
  readonly problem: string | null;
}

export interface TailOptions {
  readonly entriesMax: number;
  /** Read back from this byte on, as a page before gave it; absent for the last page. */
  readonly beforeOffset?: number;
  readonly textMax?: number;
}

export interface TailPage {
  /** In the file's order. */
  readonly entries: readonly HistoryEntry[];
  /** Where this page begins: what to ask for the page before it; null at the beginning of the file. */
  readonly beforeOffset: number | null;
  readonly badCount: number;
}

/** A session that a process is said to be working on. */
export interface LiveSession {
  /** The agent's own id of the session at the top of a tree. */
  readonly id: string;
  readonly pid: number;
  /** When that process began; what stopped before it was the work of an earlier one. */
  readonly startedAt: number | null;
  /** Whether that very process is alive; null where it cannot be told. */
  readonly alive: boolean | null;
  /** What the agent says about itself; null where it does not. */
  readonly doing: "busy" | "idle" | "waiting" | null;
  /** In words, for the evidence. */
  readonly how: string;
}
