import type {
  Agent,
  Answer,
  CallbackConfig,
  Carrier,
  Delivery,
  Effective,
  EntryAuthor,
  EntryBody,
  EntryKind,
  Evidence,
  EventType,
  MessageKind,
  MessageStatus,
  Outcome,
  Receipt,
  Permission,
  TokenRight,
  TriggerStatus,
  TurnKind,
  TurnStatus,
  Usage,
} from "../../contract/index.ts";
import {
  flag,
  heldJson,
  heldProse,
  json,
  jsonList,
  maybe,
  number,
  prose,
  type RecordOf,
  word,
} from "../column.ts";

/**
 * The columns of the tables, and the records made from them. Times are milliseconds since the epoch. A
 * session's status is never stored; it is derived.
 */
export const SESSION = {
  id: word(),
  rootId: word(),
  parentId: maybe(word()),
  shortId: word(),
  name: maybe(prose()),
  depth: number(),
  detachedAt: maybe(number()),
  spawnTurnId: maybe(word()),
  spawnEntryIndex: maybe(number()),
  spawnConfig: heldJson<Record<string, unknown>>(),
  effective: json<Effective>(),
  title: maybe(prose()),
  agent: word(),
  profile: word(),
  model: maybe(word()),
  cwd: word(),
  node: word(),
  origin: word<"managed" | "attached" | "imported">(),
  source: word<"cli" | "page" | "http" | "mcp" | "subsession" | "hook" | "import">(),
  scope: word(),
  callback: json<CallbackConfig>(),
  onParentEnd: word<"cancel" | "detach">(),
  /** The number of the open round, or of the last one if none is open; 0 before the first. */
  round: number(),
  roundOpen: flag(),
  roundOpenedAt: maybe(number()),
  roundClosedAt: maybe(number()),
  /** How the last closed round ended, and why. */
  outcome: maybe(word<Outcome>()),
  outcomeReason: maybe(prose()),
  /** Why queued messages wait: the last round failed, or a person stopped it. */
  held: maybe(word<"failed" | "stopped">()),
  /** Until this time, background work that the driver reported keeps the round open. */
  backgroundUntil: maybe(number()),
  /** Why nothing is taken from the inbox: a usage limit or failure of the provider, or no budget left. */
  parked: maybe(json<Parked>()),
  /** Time that does not count against the open round's limit: the machine slept, or the daemon was down. */
  pausedMs: number(),
  evidence: json<Evidence>(),
  agentSessionId: maybe(word()),
  /** Raised with every new lease; a writer with an older fence is refused. */
  fence: number(),
  messageCount: number(),
  toolUseCount: number(),
  usage: json<Usage>(),
  /** How many entries, message positions and turns have been given out. Each count is also the next index. */
  entryCount: number(),
  positionCount: number(),
  turnCount: number(),
  seen: flag(),
  createdAt: number(),
  updatedAt: number(),
  lastActivityAt: number(),
  endedAt: maybe(number()),
  /** `rebuilt`: restored from its rollout after the store was lost. */
  endReason: maybe(word<"cancelled" | "acked" | "removed" | "gone" | "rebuilt">()),
  endBy: maybe(prose()),
  endNote: maybe(prose()),
  key: maybe(word()),
  keyCaller: maybe(word()),
  keyHash: maybe(word()),
  /** When it was found that the reply to the call that spawned this session had been lost. */
  replyLostAt: maybe(number()),
};
export type SessionRecord = RecordOf<typeof SESSION>;

export interface Parked {
  on: "limit" | "budget";
  since: number;
  /** The time at which the session resumes; null if it resumes only when there is budget again. */
  until: number | null;
  /** One line that says why the session is parked, with the limit's or the retry's numbers. */
  reason: string;
  /** The number of the next retry; set only while the session waits after a provider's failure. */
  retry?: number;
}

export const TURN = {
  id: word(),
  rootId: word(),
  sessionId: word(),
  index: number(),
  round: number(),
  kind: word<TurnKind>(),
  status: word<TurnStatus>(),
  node: word(),
  boot: word(),
  fence: number(),
  /** Starts at 1; each resume adds 1. */
  attempt: number(),
  /** The number of earlier attempts in which the agent began to work; only they count against the maximum. */
  attemptsBegun: number(),
  /** How many entries the session had when this attempt began. */
  attemptFrom: number(),
  /** The last attempt in which the agent reported work on its prompt; 0 if none. Written by the recorder. */
  reportedAttempt: number(),
  /** The last attempt in which a tool call of the agent was served; 0 if none. Written by the operations. */
  servedAttempt: number(),
  description: prose(),
  startedAt: number(),
  settledAt: maybe(number()),
  error: maybe(prose()),
  stopReason: maybe(prose()),
  lastAssistantMessage: maybe(prose()),
  entryFrom: number(),
  entryTo: maybe(number()),
  toolUseCount: number(),
  /** The turn's actual usage. If it is unknown: the turn's reservation, marked `estimated`. */
  usage: json<Usage>(),
  /**
   * What the turn, while it runs, reserves from its session's budget and from the budgets of the session's
   * ancestors; null if none of these budgets limits tokens or cost.
   */
  reservedTokens: maybe(number()),
  reservedUsd: maybe(number()),
  /**
   * The number of blocking Kinfold calls that the turn waits for. While it is above 0, the turn does not
   * count against the node's limit of running turns.
   */
  blocked: number(),
  /** Who requested a stop; null if nobody did. */
  stopBy: maybe(prose()),
  stopNote: maybe(prose()),
};
export type TurnRecord = RecordOf<typeof TURN> & { receipt: Receipt | null };

export const MESSAGE = {
  id: word(),
  rootId: word(),
  sessionId: word(),
  position: number(),
  kind: word<MessageKind>(),
  senderKind: word<"person" | "session" | "daemon" | "outside">(),
  senderId: maybe(word()),
  delivery: word<Delivery>(),
  status: word<MessageStatus>(),
  carrier: maybe(word<Carrier>()),
  deliveryId: word(),
  key: maybe(word()),
  keyCaller: maybe(word()),
  keyHash: maybe(word()),
  /** Identifies the child and the round that a callback is about; unique per session. */
  callbackKey: maybe(word()),
  turnId: maybe(word()),
  /** Null for a callback until it is rendered. */
  body: maybe(heldProse()),
  /** The input that a callback is rendered from. */
  data: maybe(heldJson<Record<string, unknown>>()),
  metadata: heldJson<Record<string, unknown>>(),
  /** True if the agent may have seen the message already. When sent again, the message says so. */
  repeated: flag(),
  voidReason: maybe(prose()),
  admittedAt: number(),
  takenAt: maybe(number()),
  landedAt: maybe(number()),
  /** The index of the message's entry in the transcript; null until there is one. */
  entryIndex: maybe(number()),
};
export type MessageRecord = RecordOf<typeof MESSAGE>;

export const ENTRY = {
  rootId: word(),
  sessionId: word(),
  index: number(),
  turnId: maybe(word()),
  author: word<EntryAuthor>(),
  kind: word<EntryKind>(),
  body: json<EntryBody>(),
  isSubagent: flag(),
  at: number(),
};
export type EntryRecord = RecordOf<typeof ENTRY>;

export const TRIGGER = {
  id: word(),
  rootId: word(),
  sessionId: word(),
  toId: maybe(word()),
  toPerson: flag(),
  type: prose(),
  payload: json<Record<string, unknown>>(),
  status: word<TriggerStatus>(),
  round: number(),
  /**
   * While `toPerson` is false: when the question will also go to a person; sleep of the machine postpones
   * this. Once `toPerson` is true: when the question went to a person, or null if it did from the beginning.
   */
  personAt: maybe(number()),
  /** When the default answer applies; sleep of the machine postpones it. */
  defaultAt: maybe(number()),
  default: maybe(prose()),
  originalId: maybe(word()),
  context: maybe(prose()),
  answer: maybe(heldJson<Answer>()),
  seenAt: maybe(number()),
  /** Set only for a vendor's own request. The request ends when the process with this fence ends. */
  fence: maybe(number()),
  createdAt: number(),
  closedAt: maybe(number()),
};
export type TriggerRecord = RecordOf<typeof TRIGGER>;

export const CHECKPOINT = {
  id: word(),
  rootId: word(),
  sessionId: word(),
  turnId: maybe(word()),
  kind: word<"explicit" | "compaction" | "automatic">(),
  summary: prose(),
  entities: jsonList<string>(),
  constraints: json<Record<string, string>>(),
  entryIndex: number(),
  at: number(),
};
export type CheckpointRecord = RecordOf<typeof CHECKPOINT>;

/** A runner's right to a session for one agent process, which has the lease's id in its environment. */
export const LEASE = {
  id: word(),
  sessionId: word(),
  rootId: word(),
  node: word(),
  boot: word(),
  fence: number(),
  pid: maybe(number()),
  startTime: maybe(number()),
  /**
   * While the agent runs (`pid` is set): its descendant processes whose environment lacks the lease's id.
   * Afterwards: processes that could not be stopped.
   */
  descendants: jsonList<{ pid: number; startTime: number | null; command: string; boot?: string | null }>(),
  openedAt: number(),
};
export type LeaseRecord = RecordOf<typeof LEASE>;

export const TOKEN = {
  hash: word(),
  kind: word<"person" | "session" | "outside">(),
  sessionId: maybe(word()),
  rootId: maybe(word()),
  fence: maybe(number()),
  name: prose(),
  /** Only for an API key: its rights and its scope. Null means all rights or all scopes. */
  can: maybe(jsonList<TokenRight>()),
  scope: maybe(word()),
  /** Only for an API key: the highest permission and the folders allowed for its sessions; null means any. */
  ceiling: maybe(word<Permission>()),
  roots: maybe(jsonList<string>()),
  createdAt: number(),
  expiresAt: maybe(number()),
  revokedAt: maybe(number()),
};
export type TokenRecord = RecordOf<typeof TOKEN>;

export const EVENT = {
  rootId: word(),
  seq: number(),
  xid: number(),
  sessionId: word(),
  type: word<EventType>(),
  text: maybe(prose()),
  data: json<Record<string, unknown>>(),
  at: number(),
};
export type EventRecord = RecordOf<typeof EVENT>;

export const NODE = {
  node: word(),
  boot: word(),
  aliveUntil: maybe(number()),
  agents: jsonList<Agent>(),
};
export type NodeRecord = RecordOf<typeof NODE>;

export const TREE = {
  rootId: word(),
  seq: number(),
  xid: number(),
  spawnCount: number(),
  /** The highest transaction number of the removed events; 0 if none was removed. */
  prunedXid: number(),
};
export type TreeRecord = RecordOf<typeof TREE>;

/** What a session and all sessions below it have used or reserved of the session's budget. */
export const SPENT = {
  tokens: number(),
  usd: number(),
  /** Reserved by running turns. */
  reservedTokens: number(),
  reservedUsd: number(),
  turns: number(),
};
export type Spent = RecordOf<typeof SPENT>;

export const COUNTS = {
  /** Sessions with a running turn. */
  running: number(),
  /** Sessions with an open round and no running turn. */
  waiting: number(),
  /** Sessions with an open round. */
  open: number(),
  unseen: number(),
  sessions: number(),
  /** Trees with an open round. */
  families: number(),
};
export type Counts = RecordOf<typeof COUNTS>;

/** The agent process that a write comes from: its session, and the fence it was started with. */
export interface ProcessFence {
  readonly session: string;
  readonly fence: number;
}

/** Returned to a late writer: another process has replaced it, so nothing was written. */
export const STALE: unique symbol = Symbol("stale fence");
export type Stale = typeof STALE;
