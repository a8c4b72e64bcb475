import type {
  Agent,
  AgentStatus,
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

/** What the tables hold. Times are milliseconds since the epoch; a status is never stored, it is derived. */
export interface SessionRecord {
  id: string;
  rootId: string;
  parentId: string | null;
  shortId: string;
  name: string | null;
  depth: number;
  detachedAt: number | null;
  spawnTurnId: string | null;
  spawnEntryIndex: number | null;
  spawnConfig: Record<string, unknown>;
  effective: Effective;
  title: string | null;
  agent: string;
  profile: string;
  model: string | null;
  cwd: string;
  node: string;
  origin: "managed" | "attached" | "imported";
  source: "cli" | "page" | "http" | "mcp" | "subsession" | "hook" | "import";
  scope: string;
  callback: CallbackConfig;
  onParentEnd: "cancel" | "detach";
  /** The number of the round that is open, or of the last one; 0 before the first. */
  round: number;
  roundOpen: boolean;
  roundOpenedAt: number | null;
  roundClosedAt: number | null;
  /** How the last closed round ended, and why. */
  outcome: Outcome | null;
  outcomeReason: string | null;
  /** Why queued messages are not worked off: the last round failed, or a person stopped it. */
  held: "failed" | "stopped" | null;
  /** Until when background work that the driver reported keeps the round open. */
  backgroundUntil: number | null;
  /** Why nothing is taken from its inbox: a vendor's usage limit, or nothing left to reserve. */
  parked: Parked | null;
  /** How much of the open round does not count as its time: sleep, and a daemon that was down. */
  pausedMs: number;
  evidence: Evidence;
  agentSessionId: string | null;
  /** Raised with every new lease; a writer with an older one loses. */
  fence: number;
  messageCount: number;
  toolUseCount: number;
  usage: Usage;
  /** How many entries, messages and turns there have been: the next index of each. */
  entryCount: number;
  positionCount: number;
  turnCount: number;
  seen: boolean;
  createdAt: number;
  updatedAt: number;
  lastActivityAt: number;
  endedAt: number | null;
  /** `rebuilt`: made again from its rollout after the store was lost. */
  endReason: "cancelled" | "acked" | "removed" | "gone" | "rebuilt" | null;
  endBy: string | null;
  endNote: string | null;
  key: string | null;
  keyCaller: string | null;
  keyHash: string | null;
  /** When the reply to its spawn could not be delivered. */
  replyLostAt: number | null;
}

export interface Parked {
  on: "limit" | "budget";
  since: number;
  /** When it goes on by itself; null where something must change first. */
  until: number | null;
  /** One line: which limit, with its numbers. */
  reason: string;
  /** It waits for a provider in trouble, and this is the number of the retry that follows. */
  retry?: number;
}

export interface TurnRecord {
  id: string;
  rootId: string;
  sessionId: string;
  index: number;
  round: number;
  kind: TurnKind;
  status: TurnStatus;
  node: string;
  boot: string;
  fence: number;
  /** 1 at first, one more for every resume. */
  attempt: number;
  /** In how many of its earlier attempts the agent had begun to work; only these count against the limit. */
  attemptsBegun: number;
  /** How many entries the session had when this attempt began. */
  attemptFrom: number;
  description: string;
  startedAt: number;
  settledAt: number | null;
  error: string | null;
  stopReason: string | null;
  lastAssistantMessage: string | null;
  entryFrom: number;
  entryTo: number | null;
  toolUseCount: number;
  /** What it has used; what it held where that could not be known (`estimated`). */
  usage: Usage;
  /** What it holds of the budgets above it while it runs; null where none of them counts that. */
  reservedTokens: number | null;
  reservedUsd: number | null;
  receipt: Receipt | null;
  /** How many blocking Kinfold calls it is inside of: above 0 it holds no slot. */
  blocked: number;
  /** A stop was asked for; by whom stands in the session's row or in `stopBy`. */
  stopBy: string | null;
  stopNote: string | null;
}

export interface MessageRecord {
  id: string;
  rootId: string;
  sessionId: string;
  position: number;
  kind: MessageKind;
  senderKind: "person" | "session" | "daemon" | "outside";
  senderId: string | null;
  delivery: Delivery;
  status: MessageStatus;
  carrier: Carrier | null;
  deliveryId: string;
  key: string | null;
  keyCaller: string | null;
  keyHash: string | null;
  /** Unique per session: child and round of a callback. */
  callbackKey: string | null;
  turnId: string | null;
  /** Null for a callback until it is rendered. */
  body: string | null;
  /** What a callback is rendered from. */
  data: Record<string, unknown> | null;
  metadata: Record<string, unknown>;
  /** It may have been seen already: said so when it is sent. */
  repeated: boolean;
  voidReason: string | null;
  admittedAt: number;
  takenAt: number | null;
  landedAt: number | null;
  /** Its entry in the transcript; null until it has one. A tool's reply is an entry of its own. */
  entryIndex: number | null;
}

export interface EntryRecord {
  rootId: string;
  sessionId: string;
  index: number;
  turnId: string | null;
  author: EntryAuthor;
  kind: EntryKind;
  body: EntryBody;
  isSubagent: boolean;
  at: number;
}

export interface TriggerRecord {
  id: string;
  rootId: string;
  sessionId: string;
  toId: string | null;
  toPerson: boolean;
  type: string;
  payload: Record<string, unknown>;
  status: TriggerStatus;
  round: number;
  /**
   * When a person is asked as well: awake time, moved by sleep. With `toPerson` it is when that came;
   * null there: a person was asked from the beginning.
   */
  personAt: number | null;
  /** When the default holds, likewise. */
  defaultAt: number | null;
  default: string | null;
  originalId: string | null;
  context: string | null;
  answer: Answer | null;
  seenAt: number | null;
  /** Of a vendor's own request: it lives with the process of this fence and no longer. */
  fence: number | null;
  createdAt: number;
  closedAt: number | null;
}

export interface CheckpointRecord {
  id: string;
  rootId: string;
  sessionId: string;
  turnId: string | null;
  kind: "explicit" | "compaction" | "automatic";
  summary: string;
  entities: string[];
  constraints: Record<string, string>;
  entryIndex: number;
  at: number;
}

/** A runner's right to a session: one agent process. Its id is the marker in the environment. */
export interface LeaseRecord {
  id: string;
  sessionId: string;
  rootId: string;
  node: string;
  boot: string;
  fence: number;
  pid: number | null;
  startTime: number | null;
  /**
   * While the agent runs (`pid` is set): processes seen below it that do not carry its marker.
   * Afterwards: what could not be stopped.
   */
  descendants: { pid: number; startTime: number | null; command: string; boot?: string | null }[];
  openedAt: number;
}

export interface TokenRecord {
  hash: string;
  kind: "person" | "session" | "outside";
  sessionId: string | null;
  rootId: string | null;
  fence: number | null;
  name: string;
  /** Of an API key: what it may do, and in which scope; null reaches all. */
  can: TokenRight[] | null;
  scope: string | null;
  /** Of an API key: the most that its sessions may be allowed, and their folders; null is any. */
  ceiling: Permission | null;
  roots: string[] | null;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
}

export interface EventRecord {
  rootId: string;
  seq: number;
  xid: number;
  sessionId: string;
  type: EventType;
  text: string | null;
  data: Record<string, unknown>;
  at: number;
}

export interface NodeRecord {
  node: string;
  boot: string;
  aliveUntil: number | null;
  agents: Agent[];
}

export interface TreeRecord {
  rootId: string;
  seq: number;
  xid: number;
  spawnCount: number;
  /** The highest transaction number among events that were removed; 0 where none was. */
  prunedXid: number;
}

/** What the turns of a session and of those below it have taken of its budget. */
export interface Spent {
  tokens: number;
  usd: number;
  /** Held by running turns. */
  reservedTokens: number;
  reservedUsd: number;
  turns: number;
}

export interface Counts {
  /** Sessions with a running turn. */
  running: number;
  /** Sessions with an open round and no running turn. */
  waiting: number;
  /** Sessions with an open round. */
  open: number;
  unseen: number;
  sessions: number;
  /** Trees with an open round in them. */
  families: number;
}

/**
 * A session or sub-agent that a reader found on disk. `imported` has a session of its own; `ours` is one
 * that we run or that is attached, of which only the facts are kept; the others are left out: because
 * somebody wants that, as the agent's own bookkeeping, or because nothing is in them yet.
 */
export interface HistoryRecord {
  no: number;
  key: string;
  node: string;
  agent: string;
  /** The agent's own id of it. */
  agentId: string;
  format: string;
  path: string;
  /** As the reader gave it, and wants it back. */
  found: Record<string, unknown>;
  /** The key of the session at the top of its family, whether that is there or not. */
  familyKey: string;
  /** Of a sub-agent whose rows stand in another's file: that file's key. */
  hostKey: string | null;
  sessionId: string;
  rootId: string;
  kind: "imported" | "ours" | "excluded" | "internal" | "empty";
  stamp: string;
  /** The stamp up to which it was read; null while only its head and tail were looked at. */
  readStamp: string | null;
  sizeBytes: number;
  readBytes: number;
  /** Of a sub-agent. */
  status: AgentStatus | null;
  /** Sub-agents that calls in this file started and that left no file. */
  missing: AgentStatus[] | null;
  badCount: number;
  bad: { line: number | null; byteOffset: number | null; reason: string }[] | null;
  problem: string | null;
  changedAt: number;
  goneAt: number | null;
  /** What was learnt: the reader's own facts, opaque here. */
  facts: Record<string, unknown> | null;
  /** Where to read on: the reader's own, opaque here. */
  place: Record<string, unknown> | null;
}

export interface HistoryKnown extends Pick<
  HistoryRecord,
  "no" | "key" | "agentId" | "format" | "path" | "stamp" | "readStamp" | "kind" | "familyKey" | "hostKey"
> {
  sessionId: string;
  rootId: string;
  goneAt: number | null;
  sizeBytes: number;
  readBytes: number;
  /** Of its session, where there is one: what its evidence says, where it stands and in which scope. */
  state: string | null;
  depth: number | null;
  parentId: string | null;
  cwd: string | null;
  scope: string | null;
}

/** Somebody asked for what agents left on disk to be read. */
export interface HistoryAsked {
  exclude: string[];
  /** Raised when everything is to be looked at again. */
  count: number;
  at: number;
}
