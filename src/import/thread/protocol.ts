import type { HistoryProblem, HistoryScan } from "../../contract/index.ts";
import type { HistoryFormat, UserHome } from "../../history/port.ts";
import type {
  HistoryKnown,
  HistoryRecord,
  NewHistory,
  ImportedEntry,
  SessionRecord,
} from "../../store/port/store.ts";
import type { SetAside } from "./restarts.ts";

/** What the thread that reads is told when it starts. */
export interface ImportOptions {
  readonly userHome: UserHome;
  readonly roots: Partial<Record<HistoryFormat, readonly string[]>>;
  readonly exclude: readonly string[];
  readonly node: string;
  /** Null: of each family the git top level of its folder, else that folder. */
  readonly scope: string | null;
  /** How often everything is looked at where nothing was heard, and living processes are. */
  readonly scanMs: number;
  readonly probeMs: number;
  /** Where the thread records what it works on. */
  readonly taskMemory: SharedArrayBuffer;
  /** One task at a time. */
  readonly isCareful: boolean;
  readonly setAside: readonly SetAside[];
}

/** A session of ours that an agent's file belongs to. */
export interface OwnSession {
  readonly agentSessionId: string;
  readonly sessionId: string;
  readonly rootId: string;
  readonly depth: number;
  readonly scope: string;
}

/** Something found for the first time. Without a session where it is not imported. */
export interface NewMember {
  readonly record: NewHistory;
  readonly session: SessionRecord | null;
}

/** Entries of one session, few enough for one short write. */
export interface EntryBatch {
  readonly no: number;
  readonly sessionId: string;
  readonly rootId: string;
  readonly entries: readonly ImportedEntry[];
  /** Told one by one as they come; else as a range. */
  readonly isLive: boolean;
  readonly lineage: Lineage;
}

/** Where a live entry belongs, so that who follows the feed need not ask. */
export interface Lineage {
  readonly agentId: string;
  readonly parentId: string | null;
  readonly depth: number;
}

/** What reading or judging has changed about one session. */
export interface MemberChange {
  readonly no: number;
  readonly rootId: string;
  readonly record: Partial<HistoryRecord>;
  /** Null where it has no session of its own, or nothing of it has changed. */
  readonly session: { readonly id: string; readonly patch: Partial<SessionRecord> } | null;
}

export interface Progress {
  readonly scan: HistoryScan;
  readonly problems: readonly HistoryProblem[];
}

/** What the daemon's own thread answers: everything that is durable. */
export interface StoreSide {
  readonly [name: string]: (value: never) => unknown;
  known(page: { after: number; limit: number }): Promise<HistoryKnown[]>;
  family(page: { familyKey: string; after: number; limit: number }): Promise<HistoryRecord[]>;
  ownerOfRef(at: { node: string; format: string; ref: number }): Promise<string | null>;
  refs(page: { no: number; after: number; limit: number }): Promise<number[]>;
  ours(asked: { agent: string; ids: readonly string[] }): Promise<OwnSession[]>;
  /** Answers the numbers they have from now on. */
  add(members: readonly NewMember[]): Promise<number[]>;
  /** After one that failed, nothing more of its tree is taken until `resume`. */
  append(batch: EntryBatch): Promise<void>;
  change(changes: readonly MemberChange[]): Promise<void>;
  resume(rootIds: readonly string[]): Promise<void>;
  progress(progress: Progress): Promise<void>;
}

/** What the thread that reads answers. */
export interface ReaderSide {
  readonly [name: string]: (value: never) => unknown;
  /** Look at everything now. Resolves when all of it is in the list; reading goes on. */
  look(exclude: readonly string[]): Promise<void>;
  stop(none: null): Promise<void>;
}
