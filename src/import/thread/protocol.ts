import type { HistoryFormat, UserHome } from "../../history/port.ts";
import type {
  HistoryKnown,
  HistoryProgress,
  HistoryRecord,
  NewHistory,
  ImportedEntry,
  SessionRecord,
} from "../../store/port/store.ts";
import type { SetAside } from "./restarts.ts";

export interface ImportOptions {
  readonly userHome: UserHome;
  readonly roots: Partial<Record<HistoryFormat, readonly string[]>>;
  readonly exclude: readonly string[];
  readonly node: string;
  /** If null, a family's scope is the git top level of its folder; outside git, the folder itself. */
  readonly scope: string | null;
  readonly scanMs: number;
  /** How often the processes of working sessions are checked. */
  readonly probeMs: number;
  readonly taskMemory: SharedArrayBuffer;
  readonly isCareful: boolean;
  readonly setAside: readonly SetAside[];
}

/** A managed or attached session that an agent's file belongs to. */
export interface OwnSession {
  readonly agentSessionId: string;
  readonly sessionId: string;
  readonly rootId: string;
  readonly depth: number;
  readonly scope: string;
}

/** A newly found file. `session` is null when the file is not imported. */
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
  /** True: each entry is announced separately. False: the whole batch is announced as one range. */
  readonly isLive: boolean;
  readonly lineage: Lineage;
}

/** The position of a live entry's session in its tree, so that followers of the feed need not look it up. */
export interface Lineage {
  readonly agentId: string;
  readonly parentId: string | null;
  readonly depth: number;
}

export interface MemberChange {
  readonly no: number;
  readonly rootId: string;
  readonly record: Partial<HistoryRecord>;
  /** Null when the member has no session in the store, or when nothing about that session has changed. */
  readonly session: { readonly id: string; readonly patch: Partial<SessionRecord> } | null;
}

export interface StoreSide {
  readonly [name: string]: (value: never) => unknown;
  known(page: { after: number; limit: number }): Promise<HistoryKnown[]>;
  family(page: { familyKey: string; after: number; limit: number }): Promise<HistoryRecord[]>;
  ownerOfRef(at: { node: string; format: string; ref: number }): Promise<string | null>;
  refs(page: { no: number; after: number; limit: number }): Promise<number[]>;
  ours(asked: { agent: string; ids: readonly string[] }): Promise<OwnSession[]>;
  /** Returns the members' numbers (`no`), in the same order. */
  add(members: readonly NewMember[]): Promise<number[]>;
  /** If an append fails, all writes for its tree are rejected until `resume`. */
  append(batch: EntryBatch): Promise<void>;
  change(changes: readonly MemberChange[]): Promise<void>;
  resume(rootIds: readonly string[]): Promise<void>;
  progress(progress: HistoryProgress): Promise<void>;
}

export interface ReaderSide {
  readonly [name: string]: (value: never) => unknown;
  /** Scans everything now. Resolves when all sessions are listed; reading continues. */
  scan(exclude: readonly string[]): Promise<void>;
  stop(none: null): Promise<void>;
}
