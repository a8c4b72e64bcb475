import type { Agent, Fragment, MessageStatus } from "../../contract/index.ts";
import type { EntryFound, EntrySearch } from "./found.ts";
import type { DraftReads, DraftWrites } from "./draft.ts";
import type { HistoryReads, HistoryWrites, Imports } from "./history.ts";
import type { StoreTrouble } from "../problem.ts";
import type { RetentionReads, RetentionWrites } from "./retention.ts";
import type { ScopeMoveReads, ScopeMoveWrites } from "../tables/scope-move.ts";
import type {
  CheckpointRecord,
  Counts,
  EntryRecord,
  EventRecord,
  LeaseRecord,
  MessageRecord,
  NodeRecord,
  ProcessFence,
  SessionRecord,
  Spent,
  Stale,
  TokenRecord,
  TreeRecord,
  TriggerRecord,
  TurnRecord,
} from "./record.ts";
import type { Visible } from "../../domain/permission.ts";

export { STALE } from "./record.ts";
export type * from "./draft.ts";
export type * from "./history.ts";
export type * from "./retention.ts";
export type * from "./record.ts";
export type * from "./found.ts";
// Defined in the domain, so that the rules and the queries share one definition of who may see what.
export type { Visible } from "../../domain/permission.ts";

/**
 * The port to durable state.
 *
 * `write` locks one tree until the commit, and resolves once the commit is durable. If the closure throws,
 * nothing changes and `write` rejects with that error. Reads that a decision depends on must use `tx`. The
 * closure may await nothing but `tx`; otherwise the store revokes `tx` and rolls back. Wakes and commit
 * listeners run after the commit and are only advice: if one is lost, the next poll finds the work. User and
 * agent text is redacted (the tables declare which columns), except text that an agent has yet to receive.
 */
export interface Store {
  readonly kind: "sqlite" | "postgres";
  /**
   * Part of every feed cursor. A new epoch begins when events that a cursor has seen may be gone: for a new
   * or restored store, or after a crash of the machine. If only the daemon was killed, the epoch stays the
   * same.
   */
  readonly epoch: string;
  /** Identifies this run of the daemon. Each lease records the boot that took it. */
  readonly boot: string;
  readonly node: string;
  readonly read: Reads;
  readonly feed: FeedReads;
  readonly nodes: Nodes;
  readonly imports: Imports;
  write<T>(rootId: string, work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * A write that comes from an agent process, or is about one. Its fence is compared with the session's under
   * the tree's lock. If they differ, the closure does not run, nothing is written, and the result is `STALE`.
   */
  write<T>(rootId: string, by: ProcessFence, work: (tx: Tx) => Promise<T>): Promise<T | Stale>;
  /**
   * Full-text search over entries. At most two run at once, so that other work is not delayed. A search that
   * takes too long is rejected with `search_too_long`.
   */
  search(search: EntrySearch): Promise<EntryFound>;
  /** Tokens belong to no tree. */
  addToken(token: TokenRecord): Promise<void>;
  revokeToken(hash: string, at: number): Promise<boolean>;
  onCommit(listener: (commit: Commit) => void): () => void;
  /** Sends live text, already redacted, to the listeners of this store. It is never stored. */
  publish(fragment: Fragment): void;
  onFragment(listener: (fragment: Fragment) => void): () => void;
  /**
   * Asks this node's engine to probe its agents again, because one may have been installed or signed in to.
   * Resolves when the result is published, or immediately if no engine listens. Never rejects: after a
   * failure the previous result stays published.
   */
  probe(): Promise<void>;
  onProbe(listener: () => Promise<void>): () => void;
  /** Makes a consistent copy in one file. Rejects with `not_available` if the store is a server. */
  backup(path: string): Promise<{ bytes: number }>;
  /** The number of writes in progress or waiting. Reads memory only. */
  writesWaiting(): number;
  /** Not null while the store's server does not answer. Reads memory only, so it never waits. */
  trouble(): StoreTrouble | null;
  /** Closes cleanly, so that the next opening keeps the epoch. */
  close(): Promise<void>;
}

export interface Commit {
  readonly rootIds: readonly string[];
  /** Sessions that may be ready for work. */
  readonly wakes: readonly string[];
}

export interface Reads {
  readonly sessions: SessionReads;
  readonly messages: MessageReads;
  readonly turns: TurnReads;
  readonly entries: EntryReads;
  readonly drafts: DraftReads;
  readonly triggers: TriggerReads;
  readonly checkpoints: CheckpointReads;
  readonly retention: RetentionReads;
  readonly scopeMoves: ScopeMoveReads;
  readonly leases: LeaseReads;
  readonly tokens: TokenReads;
  readonly history: HistoryReads;
  readonly trees: { byId(rootId: string): Promise<TreeRecord | null> };
}

export interface SessionFilter {
  /** Required: every query over several trees is limited to what the caller may see. */
  visible: Visible;
  parentId?: string;
  rootId?: string;
  origin?: string;
  agent?: string;
  ended?: boolean;
  /** Only sessions with an open round, and imported ones whose evidence says that they run or wait. */
  atWork?: boolean;
  unseen?: boolean;
  /** Only sessions that come before this one by createdAt, then id. */
  before?: { createdAt: number; id: string };
  limit: number;
}

export type SessionName = Pick<SessionRecord, "id" | "shortId" | "name">;

export interface SessionReads {
  byId(id: string): Promise<SessionRecord | null>;
  /**
   * Returns at most ten sessions whose name is `ref`, whose id begins with it (at least 8 characters), or
   * whose short id begins with it (at least 4). Sessions with an open round come first, then the newest.
   */
  byRef(ref: string, visible: Visible): Promise<SessionRecord[]>;
  byKey(caller: string, key: string): Promise<SessionRecord | null>;
  /** Finds sessions by the id that the agent itself uses, whatever their origin. */
  byAgentSession(agent: string | null, agentSessionId: string): Promise<SessionRecord[]>;
  /** Returns the newest child with this name that has an open round, or null. */
  openByName(parentId: string, name: string): Promise<SessionRecord | null>;
  /** Returns the child spawned with this input, if the reply to its spawn was lost at or after `since`. */
  replyLost(parentId: string, keyHash: string, since: number): Promise<SessionRecord | null>;
  children(parentId: string): Promise<SessionRecord[]>;
  /** Children that the parent waits for: managed, not detached, with callbacks on and an open round. */
  awaitedChildren(parentId: string): Promise<SessionName[]>;
  /** Children that count towards the limits: managed, not detached, not ended, with an open round. */
  openChildren(parentId: string): Promise<SessionName[]>;
  /** All sessions of a tree, by depth, then creation. */
  tree(rootId: string): Promise<SessionRecord[]>;
  /** What each session of a tree has used, by depth, then creation. */
  treeUsage(rootId: string): Promise<Pick<SessionRecord, "id" | "parentId" | "usage">[]>;
  /** Counts the tree's managed sessions that have not ended and have an open round. */
  openCount(rootId: string): Promise<number>;
  spawnedSince(rootId: string, at: number): Promise<number>;
  list(filter: SessionFilter): Promise<SessionRecord[]>;
  /**
   * Managed sessions of this node with a queued message and no running turn that have not ended, are not
   * parked, and whose messages are not held back after a failure or a stop. Longest waiting first.
   */
  ready(node: string, limit: number): Promise<SessionRecord[]>;
  /** Counts the ready sessions that have waited longer than this one. */
  readyBefore(node: string, sessionId: string): Promise<number>;
  /** Managed sessions of this node, not ended, with an open round. */
  withOpenRound(node: string): Promise<SessionRecord[]>;
  /** Trees of this node with a time limit and an open round. */
  timedTrees(node: string): Promise<string[]>;
  /** Sessions of this node with an open round that have background work. */
  inBackground(node: string): Promise<SessionRecord[]>;
  /** Managed sessions of this node, not ended, whose parking ends at `at` or earlier. */
  parkedUntil(node: string, at: number): Promise<SessionRecord[]>;
  /** Parked sessions of a tree that have not ended; least recently updated first. */
  parkedIn(rootId: string): Promise<SessionRecord[]>;
  counts(visible: Visible): Promise<Counts>;
  /** Tokens and cost of the turns settled at or after `at`. */
  usageSince(at: number, visible: Visible): Promise<{ tokens: number; usd: number | null }>;
}

export interface MessageReads {
  byId(id: string): Promise<MessageRecord | null>;
  byKey(caller: string, key: string): Promise<MessageRecord | null>;
  byDeliveryId(sessionId: string, deliveryId: string): Promise<MessageRecord | null>;
  byCallbackKey(sessionId: string, callbackKey: string): Promise<MessageRecord | null>;
  /** Sorted as turns take them: answers and the daemon's own messages first, then by position. */
  queued(sessionId: string, limit: number): Promise<MessageRecord[]>;
  ofTurn(turnId: string): Promise<MessageRecord[]>;
  /** Returns the ids of those turns of the round that received nothing but callbacks. */
  callbackTurns(sessionId: string, round: number): Promise<string[]>;
  ofSession(sessionId: string, statuses: readonly MessageStatus[]): Promise<MessageRecord[]>;
  /** Counts messages whose status is `queued` or `taken`. */
  openCount(sessionId: string): Promise<number>;
  queuedCount(sessionId: string): Promise<number>;
}

export interface TurnReads {
  byId(id: string): Promise<TurnRecord | null>;
  running(sessionId: string): Promise<TurnRecord | null>;
  /** Oldest first. */
  ofRound(sessionId: string, round: number): Promise<TurnRecord[]>;
  last(sessionId: string): Promise<TurnRecord | null>;
  /** Newest first. */
  ofSession(sessionId: string, page: { beforeIndex?: number; limit: number }): Promise<TurnRecord[]>;
  /** Counts the node's running turns, except those that wait in a blocking Kinfold call. */
  slotsHeld(node: string): Promise<number>;
  /** Running turns of a node, whichever boot started them. */
  runningOn(node: string): Promise<TurnRecord[]>;
  /** What this session and all managed sessions below it have spent, except in the given turn. */
  spentBelow(sessionId: string, withoutTurnId: string | null): Promise<Spent>;
  /** The highest known usage of a settled turn with this profile in this tree. */
  largest(rootId: string, profile: string): Promise<{ tokens: number; usd: number }>;
}

export interface EntryReads {
  /**
   * Ascending. With `after`: the first `limit` entries above it. With `before`: the last `limit` below it.
   * With neither: the newest.
   */
  page(sessionId: string, page: EntryPage): Promise<EntryRecord[]>;
  /**
   * Returns the newest entries of these kinds between `after` and `before`, ascending. At most `limit`
   * entries are returned, and only as many as fit into `bytesMax`; a longer entry is counted as
   * `entryBytesMax`. The newest entry is always returned.
   */
  tail(
    sessionId: string,
    of: { kinds: readonly EntryRecord["kind"][]; after: number; before: number } & TailMost,
  ): Promise<EntryRecord[]>;
}

/** `bytesMax` limits the size of the page; at least one entry is returned. */
type EntryPage = { before?: number; after?: number; limit: number; bytesMax?: number };
type TailMost = { bytesMax: number; entryBytesMax: number; limit: number };

export interface TriggerReads {
  byId(id: string): Promise<TriggerRecord | null>;
  ofSession(sessionId: string): Promise<TriggerRecord[]>;
  /** Finds triggers by id or by the last characters of an id; newest first, at most five. */
  byRef(ref: string): Promise<TriggerRecord[]>;
  /** Open triggers that may need an answer, oldest first. */
  open(of: {
    sessionId?: string;
    toId?: string;
    toPerson?: boolean;
    fence?: number;
  }): Promise<TriggerRecord[]>;
  /** Open triggers whose deadline has passed. */
  due(now: number): Promise<TriggerRecord[]>;
  withDeadline(): Promise<TriggerRecord[]>;
  /** Open triggers of the same session that escalate this one, or that this one escalates. */
  openPairOf(trigger: TriggerRecord): Promise<TriggerRecord[]>;
  /** Returns whether the trigger was escalated, even if the escalation has been answered since. */
  isPassedOn(id: string): Promise<boolean>;
  /** Counts the session's open questions, plan reviews and permission requests. */
  openCount(sessionId: string): Promise<number>;
}

export interface CheckpointReads {
  ofSession(sessionId: string): Promise<CheckpointRecord[]>;
  /** The last checkpoint of each kind, in the order of the transcript; null if there is none. */
  latest(sessionId: string): Promise<Record<CheckpointRecord["kind"], CheckpointRecord | null>>;
  /** The constraints of the newest explicit checkpoint of each ancestor, the root's first. */
  constraintsAbove(sessionId: string): Promise<Pick<CheckpointRecord, "sessionId" | "constraints">[]>;
}

export interface CheckpointWrites {
  add(record: CheckpointRecord): Promise<void>;
  /** Replaces the session's automatic checkpoint, so that it has only one. */
  replaceAutomatic(record: CheckpointRecord): Promise<void>;
}

export interface TokenReads {
  byHash(hash: string): Promise<TokenRecord | null>;
  /** API keys, oldest first. */
  outside(): Promise<TokenRecord[]>;
}

export interface LeaseReads {
  bySession(sessionId: string): Promise<LeaseRecord | null>;
  ofNode(node: string): Promise<LeaseRecord[]>;
}

export interface Tx extends Reads {
  readonly rootId: string;
  /** The tree's row. The first write that names the tree creates the row. */
  readonly tree: TreeWrites;
  readonly sessions: SessionReads & SessionWrites;
  readonly messages: MessageReads & MessageWrites;
  readonly turns: TurnReads & TurnWrites;
  readonly entries: EntryReads & EntryWrites;
  readonly drafts: DraftReads & DraftWrites;
  readonly triggers: TriggerReads & TriggerWrites;
  readonly checkpoints: CheckpointReads & CheckpointWrites;
  readonly retention: RetentionReads & RetentionWrites;
  readonly scopeMoves: ScopeMoveReads & ScopeMoveWrites;
  readonly leases: LeaseReads & LeaseWrites;
  readonly history: HistoryReads & HistoryWrites;
  readonly tokens: TokenReads & {
    add(token: TokenRecord): Promise<void>;
    revokeOfSession(sessionId: string, at: number): Promise<void>;
  };
  /** Buffers the event until the closure has ended; the last statement of the write numbers and stores it. */
  append(event: NewEvent): void;
  /** Makes the engine check, after the commit, whether this session is ready for work. */
  wake(sessionId: string): void;
}

export type NewEvent = Pick<EventRecord, "sessionId" | "type" | "data" | "at"> & { text?: string | null };
export type NewMessage = Omit<MessageRecord, "rootId" | "position">;
/** `isClean`: the body is already redacted and is not redacted again. */
export type NewEntry = Omit<EntryRecord, "rootId" | "sessionId" | "index"> & { isClean?: boolean };

export interface TreeWrites {
  byId(rootId: string): Promise<TreeRecord | null>;
  countSpawn(): Promise<number>;
}

export interface SessionWrites {
  add(record: SessionRecord): Promise<void>;
  /**
   * Ignores fields that never change (`id`, `rootId`, `createdAt`) and counters that the store maintains
   * (`entryCount`, `positionCount`, `turnCount`). Rejects if the tree has no such session.
   */
  patch(id: string, patch: Partial<SessionRecord>): Promise<void>;
}

export interface MessageWrites {
  /** Assigns the session's next position and raises its `messageCount`. */
  add(message: NewMessage): Promise<MessageRecord>;
  /**
   * Changes the message if its status is one of `from`; otherwise returns false. Body, data and metadata stay
   * as they were sent until the message is landed or void, because the agent must receive them unchanged.
   * Then they are redacted.
   */
  move(id: string, from: readonly MessageStatus[], patch: Partial<MessageRecord>): Promise<boolean>;
}

export interface TurnWrites {
  /** Assigns the session's next index. */
  add(turn: Omit<TurnRecord, "rootId" | "index">): Promise<TurnRecord>;
  /** Changes the turn if it is running and has this fence; otherwise returns false. */
  patchRunning(id: string, fence: number, patch: Partial<TurnRecord>): Promise<boolean>;
}

export interface EntryWrites {
  /** Assigns each entry the session's next index. Entries are searchable from the commit on. */
  append(sessionId: string, entries: readonly NewEntry[]): Promise<EntryRecord[]>;
}

export interface TriggerWrites {
  add(trigger: Omit<TriggerRecord, "rootId">): Promise<void>;
  /** Changes an open trigger; returns false if it is closed. */
  patch(id: string, patch: Partial<TriggerRecord>): Promise<boolean>;
  /** Records that the asker has received the answer of a closed trigger, and redacts the answer. */
  seen(id: string, at: number): Promise<void>;
  /** Redacts the answers to requests of a process that has ended and will never receive them. */
  unheard(sessionId: string, fence: number): Promise<void>;
  /** Closes the trigger if it is open; otherwise returns false. */
  close(id: string, patch: Partial<TriggerRecord>): Promise<boolean>;
}

export interface LeaseWrites {
  /** Replaces an older lease of the session; throws if there is a newer one. */
  put(lease: Omit<LeaseRecord, "rootId">): Promise<void>;
  /** Changes the lease if it has this fence; otherwise returns false. */
  patch(sessionId: string, fence: number, patch: Partial<LeaseRecord>): Promise<boolean>;
  remove(sessionId: string, fence: number): Promise<boolean>;
}

export interface FeedReads {
  /** Returns a point in the feed: every commit after this call has `xid >= xmin`. */
  point(): Promise<{ xmin: number }>;
  /** Returns the trees that may have changed since `point` returned this `xmin`. */
  treesSince(xmin: number): Promise<{ rootId: string; seq: number }[]>;
  /** Ordered by seq. */
  ofTree(rootId: string, after: number, limit: number): Promise<EventRecord[]>;
  /** The seq of the tree's first event with `xid >= xmin`, or null if there is none. */
  firstSince(rootId: string, xmin: number): Promise<number | null>;
}

/**
 * Nodes, and the leases that say which boot of a node is alive. On the embedded store the lease of a node
 * does not expire; the next boot replaces it.
 */
export interface Nodes {
  /** Claims the node's row for this boot and publishes what its agents can do. */
  register(agents: readonly Agent[]): Promise<{ previousBoot: string | null }>;
  publish(agents: readonly Agent[]): Promise<void>;
  /** Returns false if another boot took the row or the lease expired. This node must then end its agents. */
  renew(): Promise<boolean>;
  byName(node: string): Promise<NodeRecord | null>;
}
