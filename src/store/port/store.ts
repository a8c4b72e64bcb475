import type { Agent, Fragment, MessageStatus } from "../../contract/index.ts";
import type { ProcessFence, Stale } from "./fence.ts";
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
  SessionRecord,
  Spent,
  TokenRecord,
  TreeRecord,
  TriggerRecord,
  TurnRecord,
} from "./record.ts";
import type { Visible } from "../../domain/permission.ts";

export { type ProcessFence, STALE, type Stale } from "./fence.ts";
export type * from "./draft.ts";
export type * from "./history.ts";
export type * from "./retention.ts";
export type * from "./record.ts";
export type * from "./found.ts";
// A type of the domain's own, so that what decides who sees what and what asks for it cannot differ.
export type { Visible } from "../../domain/permission.ts";

/**
 * The port to durable state.
 *
 * `write` names one tree and holds its lock until the commit; it resolves only after the commit
 * is durable, and rejects with whatever the closure threw, having changed nothing. Reads that a
 * decision needs happen on `tx`. The closure may await nothing but `tx`: an implementer revokes
 * `tx` and rolls back where it does. Wakes and the commit listener run after the commit and are
 * advice only: losing every one of them costs one poll. What somebody wrote is kept without its
 * secrets (`table.ts` says by column), but for what an agent has yet to receive.
 */
export interface Store {
  readonly kind: "sqlite" | "postgres";
  /**
   * Part of every cursor of the feed. Minted when something a cursor has seen may be gone: for a new
   * or restored store, or where the machine itself ended uncleanly; a killed daemon keeps it.
   */
  readonly epoch: string;
  /** This process's own life; the owner of leases on the embedded store. */
  readonly boot: string;
  readonly node: string;
  readonly read: Reads;
  readonly feed: FeedReads;
  readonly nodes: Nodes;
  readonly imports: Imports;
  write<T>(rootId: string, work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * A write that comes from an agent process, or is about one. Under the tree's lock the store compares the
   * fence with the session's: where they differ the closure does not run, nothing is written, and the answer
   * is `STALE`.
   */
  write<T>(rootId: string, by: ProcessFence, work: (tx: Tx) => Promise<T>): Promise<T | Stale>;
  /**
   * Full-text search over entries. It delays nothing else: at most two run at once, each for at most
   * half a second of work, after which it rejects with `search_too_long`.
   */
  search(search: EntrySearch): Promise<EntryFound>;
  /** Tokens, beside any tree. */
  addToken(token: TokenRecord): Promise<void>;
  revokeToken(hash: string, at: number): Promise<boolean>;
  onCommit(listener: (commit: Commit) => void): () => void;
  /** Live text, already without secrets: reaches listeners of this store, is never kept. */
  publish(fragment: Fragment): void;
  onFragment(listener: (fragment: Fragment) => void): () => void;
  /**
   * Asks this node's engine to look at its agents again: one may have been installed, or signed in to.
   * Resolves when what it found is published, or at once where nobody listens. Never rejects: what was
   * published before then still stands.
   */
  probe(): Promise<void>;
  onProbe(listener: () => Promise<void>): () => void;
  /** A consistent copy in one file. Rejects with `not_available` where the store is a server. */
  backup(path: string): Promise<{ bytes: number }>;
  /** How many writes were asked for and have not been answered. Answered from memory. */
  writesWaiting(): number;
  /** Not null while the store's server does not answer. Answered from memory, so it never waits. */
  trouble(): StoreTrouble | null;
  /** Ends cleanly: the epoch is kept for the next opening. */
  close(): Promise<void>;
}

export interface Commit {
  readonly rootIds: readonly string[];
  /** Sessions that may be ready. */
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
  /** No query over several trees goes without. */
  visible: Visible;
  parentId?: string;
  rootId?: string;
  origin?: string;
  agent?: string;
  ended?: boolean;
  /** Those with an open round, and imported ones that are said to run or to wait. */
  atWork?: boolean;
  unseen?: boolean;
  /** Created before this session, in the order of creation (createdAt, then id). */
  before?: { createdAt: number; id: string };
  limit: number;
}

/** Enough of a session to count it and to call it by name. */
export type SessionName = Pick<SessionRecord, "id" | "shortId" | "name">;

export interface SessionReads {
  byId(id: string): Promise<SessionRecord | null>;
  /** By id, short id or name; newest first; at most ten. A prefix of an id of eight characters or more counts. */
  byRef(ref: string, visible: Visible): Promise<SessionRecord[]>;
  byKey(caller: string, key: string): Promise<SessionRecord | null>;
  /** By the agent's own id of it, whoever runs it. */
  byAgentSession(agent: string | null, agentSessionId: string): Promise<SessionRecord[]>;
  /** The open child of this name, if there is one. */
  openByName(parentId: string, name: string): Promise<SessionRecord | null>;
  /** A child of equal input whose reply was lost since then. */
  replyLost(parentId: string, keyHash: string, since: number): Promise<SessionRecord | null>;
  children(parentId: string): Promise<SessionRecord[]>;
  /** Children that are managed, not detached, with callbacks on, and whose round is open. */
  awaitedChildren(parentId: string): Promise<SessionName[]>;
  /** Children that count for limits: managed, not detached, not ended, with an open round. */
  openChildren(parentId: string): Promise<SessionName[]>;
  /** All of a tree, by depth and then creation. */
  tree(rootId: string): Promise<SessionRecord[]>;
  /** What each of a tree has used, by depth and then creation. */
  treeUsage(rootId: string): Promise<Pick<SessionRecord, "id" | "parentId" | "usage">[]>;
  /** Managed sessions of the tree, not ended, whose round is open. */
  openCount(rootId: string): Promise<number>;
  spawnedSince(rootId: string, at: number): Promise<number>;
  list(filter: SessionFilter): Promise<SessionRecord[]>;
  /**
   * Managed sessions of this node, not ended, not held, not parked, with a queued message and no
   * running turn; longest waiting first.
   */
  ready(node: string, limit: number): Promise<SessionRecord[]>;
  /** How many are ready before this one. */
  readyBefore(node: string, sessionId: string): Promise<number>;
  /** Managed sessions of this node, not ended, whose round is open. */
  withOpenRound(node: string): Promise<SessionRecord[]>;
  /** Trees of this node with an open round whose minutes are limited. */
  timedTrees(node: string): Promise<string[]>;
  /** Those with an open round that work in the background. */
  inBackground(node: string): Promise<SessionRecord[]>;
  /** Managed sessions of this node, not ended, that are parked until then or earlier. */
  parkedUntil(node: string, at: number): Promise<SessionRecord[]>;
  /** Those of a tree that are parked and have not ended; longest first. */
  parkedIn(rootId: string): Promise<SessionRecord[]>;
  counts(visible: Visible): Promise<Counts>;
  /** Tokens and cost of turns settled since then. */
  usageSince(at: number, visible: Visible): Promise<{ tokens: number; usd: number | null }>;
}

export interface MessageReads {
  byId(id: string): Promise<MessageRecord | null>;
  byKey(caller: string, key: string): Promise<MessageRecord | null>;
  byDeliveryId(sessionId: string, deliveryId: string): Promise<MessageRecord | null>;
  byCallbackKey(sessionId: string, callbackKey: string): Promise<MessageRecord | null>;
  /** In the order they are worked off: answers and the daemon's own words first, then position. */
  queued(sessionId: string, limit: number): Promise<MessageRecord[]>;
  ofTurn(turnId: string): Promise<MessageRecord[]>;
  /** The turns of a round that were sent callbacks and nothing else. */
  callbackTurns(sessionId: string, round: number): Promise<string[]>;
  ofSession(sessionId: string, statuses: readonly MessageStatus[]): Promise<MessageRecord[]>;
  /** Queued or taken. */
  openCount(sessionId: string): Promise<number>;
  queuedCount(sessionId: string): Promise<number>;
}

export interface TurnReads {
  byId(id: string): Promise<TurnRecord | null>;
  running(sessionId: string): Promise<TurnRecord | null>;
  /** Of the session's last round, oldest first. */
  ofRound(sessionId: string, round: number): Promise<TurnRecord[]>;
  last(sessionId: string): Promise<TurnRecord | null>;
  /** Newest first. */
  ofSession(sessionId: string, page: { beforeIndex?: number; limit: number }): Promise<TurnRecord[]>;
  /** Running turns of a node that hold a slot. */
  slotsHeld(node: string): Promise<number>;
  /** Running turns of a node, of any boot. */
  runningOn(node: string): Promise<TurnRecord[]>;
  /** Of this session and all managed ones below it, without the turn named. */
  spentBelow(sessionId: string, withoutTurnId: string | null): Promise<Spent>;
  /** The most that a settled turn of this profile in this tree is known to have used. */
  largest(rootId: string, profile: string): Promise<{ tokens: number; usd: number }>;
}

export interface EntryReads {
  /** Ascending. With `before`, the last `limit` below it; with `after`, the first above it; with neither, the tail. */
  page(sessionId: string, page: EntryPage): Promise<EntryRecord[]>;
  /**
   * The newest of these kinds above `after` and below `before`, ascending: as many as there are room for in
   * `bytesMax`, where none counts for more than `entryBytesMax`, at most `limit`, and always the newest.
   */
  tail(
    sessionId: string,
    of: { kinds: readonly EntryRecord["kind"][]; after: number; before: number } & TailMost,
  ): Promise<EntryRecord[]>;
}

/** With `bytesMax` fewer, as many as there is room for in so many bytes; one at least. */
type EntryPage = { before?: number; after?: number; limit: number; bytesMax?: number };
type TailMost = { bytesMax: number; entryBytesMax: number; limit: number };

export interface TriggerReads {
  byId(id: string): Promise<TriggerRecord | null>;
  ofSession(sessionId: string): Promise<TriggerRecord[]>;
  /** By id, or by its last characters; newest first, at most five. */
  byRef(ref: string): Promise<TriggerRecord[]>;
  /** Open ones that may want an answer, oldest first. */
  open(of: {
    sessionId?: string;
    toId?: string;
    toPerson?: boolean;
    fence?: number;
  }): Promise<TriggerRecord[]>;
  /** Open ones with a deadline that has passed. */
  due(now: number): Promise<TriggerRecord[]>;
  withDeadline(): Promise<TriggerRecord[]>;
  /** Open ones of the same session that were escalated from this one, or that this one was escalated from. */
  openPairOf(trigger: TriggerRecord): Promise<TriggerRecord[]>;
  /** Whether it was escalated, also if that has been answered since. */
  isPassedOn(id: string): Promise<boolean>;
  /** Those that wait for an answer: an end or an error never does. */
  openCount(sessionId: string): Promise<number>;
}

export interface CheckpointReads {
  ofSession(sessionId: string): Promise<CheckpointRecord[]>;
  /** The newest of each kind, in the order of the transcript. */
  latest(sessionId: string): Promise<Record<CheckpointRecord["kind"], CheckpointRecord | null>>;
  /** What the newest explicit checkpoint of each session above this one holds; the root's first. */
  constraintsAbove(sessionId: string): Promise<Pick<CheckpointRecord, "sessionId" | "constraints">[]>;
}

export interface CheckpointWrites {
  add(record: CheckpointRecord): Promise<void>;
  /** There is one automatic checkpoint of a session: the newest. */
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
  /** The tree's row; made by the first write that names it. */
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
  /** Kept until the closure has ended, then numbered and written as the last statement. */
  append(event: NewEvent): void;
  /** After the commit this session is looked at. */
  wake(sessionId: string): void;
}

export type NewEvent = Omit<EventRecord, "rootId" | "seq" | "xid">;
export type NewMessage = Omit<MessageRecord, "rootId" | "position">;
/** `isClean`: its body lost its secrets as it came, and is not gone through again. */
export type NewEntry = Omit<EntryRecord, "rootId" | "sessionId" | "index"> & { isClean?: boolean };

export interface TreeWrites {
  byId(rootId: string): Promise<TreeRecord | null>;
  countSpawn(): Promise<number>;
}

export interface SessionWrites {
  add(record: SessionRecord): Promise<void>;
  /**
   * Fields that never change (`id`, `rootId`, `createdAt`) and those the store itself counts
   * (`entryCount`, `positionCount`, `turnCount`) are left as they are. Rejects where the tree has
   * no such session.
   */
  patch(id: string, patch: Partial<SessionRecord>): Promise<void>;
}

export interface MessageWrites {
  /** Gives it the next position of its session. Raises the session's `messageCount` too. */
  add(message: NewMessage): Promise<MessageRecord>;
  /**
   * Guarded: false unless its status was one of `from`. Body, data and metadata stay as they were sent until it
   * is landed or void, because the agent must receive exactly that; then they lose their secrets.
   */
  move(id: string, from: readonly MessageStatus[], patch: Partial<MessageRecord>): Promise<boolean>;
}

export interface TurnWrites {
  /** Gives it the session's next index. */
  add(turn: Omit<TurnRecord, "rootId" | "index">): Promise<TurnRecord>;
  /** Guarded by the fence and by `running`: false where either does not hold. */
  patchRunning(id: string, fence: number, patch: Partial<TurnRecord>): Promise<boolean>;
}

export interface EntryWrites {
  /** Gives each the session's next index. What is appended can be searched for from the commit on. */
  append(sessionId: string, entries: readonly NewEntry[]): Promise<EntryRecord[]>;
}

export interface TriggerWrites {
  add(trigger: Omit<TriggerRecord, "rootId">): Promise<void>;
  /** Changes an open one: false where it is closed. */
  patch(id: string, patch: Partial<TriggerRecord>): Promise<boolean>;
  /** What happened to a closed one's answer: it has been heard, so nothing is held for the asker any more. */
  seen(id: string, at: number): Promise<void>;
  /** Answers to requests of this process that it will not hear: nothing is held for it any more. */
  unheard(sessionId: string, fence: number): Promise<void>;
  /** Compare and set: false unless it was open. */
  close(id: string, patch: Partial<TriggerRecord>): Promise<boolean>;
}

export interface LeaseWrites {
  /** Takes the place of an older lease of the session. */
  put(lease: Omit<LeaseRecord, "rootId">): Promise<void>;
  /** False unless the fence is the lease's own. */
  patch(sessionId: string, fence: number, patch: Partial<LeaseRecord>): Promise<boolean>;
  remove(sessionId: string, fence: number): Promise<boolean>;
}

export interface FeedReads {
  /** A point such that everything committed later has `xid >= xmin`. */
  point(): Promise<{ xmin: number }>;
  /** Trees in which something may have happened since the point. */
  treesSince(xmin: number): Promise<{ rootId: string; seq: number }[]>;
  /** By seq. */
  ofTree(rootId: string, after: number, limit: number): Promise<EventRecord[]>;
  /** The first event of a tree with `xid >= xmin`: its seq, or null. */
  firstSince(rootId: string, xmin: number): Promise<number | null>;
}

/** Nodes and their leases on life. On the embedded store a lease has no clock and is void at the next boot. */
export interface Nodes {
  /** Claims the node's row for this boot and publishes what its agents can do. */
  register(agents: readonly Agent[]): Promise<{ previousBoot: string | null }>;
  publish(agents: readonly Agent[]): Promise<void>;
  /** False when another boot has taken the row, or it lapsed: this node's agents must end. */
  renew(): Promise<boolean>;
  byName(node: string): Promise<NodeRecord | null>;
}
