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

/**
 * The records of the tables. Times are milliseconds since the epoch. A session's status is never stored; it
 * is derived.
 */
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
  /** The number of the open round, otherwise of the last one; 0 before the first. */
  round: number;
  roundOpen: boolean;
  roundOpenedAt: number | null;
  roundClosedAt: number | null;
  /** How the last closed round ended, and why. */
  outcome: Outcome | null;
  outcomeReason: string | null;
  /** Why queued messages wait: the last round failed, or a person stopped it. */
  held: "failed" | "stopped" | null;
  /** Until this time, background work that the driver reported keeps the round open. */
  backgroundUntil: number | null;
  /** Why nothing is taken from its inbox: a vendor's usage limit, or no budget left to reserve. */
  parked: Parked | null;
  /**
   * Time that does not count against the open round's time limit: the machine slept, or the daemon was down.
   */
  pausedMs: number;
  evidence: Evidence;
  agentSessionId: string | null;
  /** Raised with every new lease; a writer with an older fence is refused. */
  fence: number;
  messageCount: number;
  toolUseCount: number;
  usage: Usage;
  /** How many entries, messages and turns there have been; each is also the next index. */
  entryCount: number;
  positionCount: number;
  turnCount: number;
  seen: boolean;
  createdAt: number;
  updatedAt: number;
  lastActivityAt: number;
  endedAt: number | null;
  /** `rebuilt`: restored from its rollout after the store was lost. */
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
  /** When it resumes by itself; null if something must change first. */
  until: number | null;
  /** One line: which limit, with its numbers. */
  reason: string;
  /** Set while it waits after a provider's failure: the number of the next retry. */
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
  /** Starts at 1; each resume adds 1. */
  attempt: number;
  /** The number of earlier attempts in which the agent began to work; only these count against the limit. */
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
  /** Its actual usage. If that is unknown, its reservation (`estimated`). */
  usage: Usage;
  /**
   * What it reserves from the budgets above it while it runs; null if no such budget counts tokens or cost.
   */
  reservedTokens: number | null;
  reservedUsd: number | null;
  receipt: Receipt | null;
  /** How many blocking Kinfold calls it is waiting in; above 0 it holds no slot. */
  blocked: number;
  /** Who requested a stop; null if nobody did. */
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
  /** Identifies the child and the round that a callback is about; unique per session. */
  callbackKey: string | null;
  turnId: string | null;
  /** Null for a callback until it is rendered. */
  body: string | null;
  /** The input that a callback is rendered from. */
  data: Record<string, unknown> | null;
  metadata: Record<string, unknown>;
  /** The agent may have seen it already; the message says so when it is sent again. */
  repeated: boolean;
  voidReason: string | null;
  admittedAt: number;
  takenAt: number | null;
  landedAt: number | null;
  /** The index of its entry in the transcript; null until there is one. */
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
   * When a person is asked too; sleep of the machine postpones it. Once `toPerson` is set: when that
   * happened, or null if a person was asked from the beginning.
   */
  personAt: number | null;
  /** When the default answer applies; sleep of the machine postpones it. */
  defaultAt: number | null;
  default: string | null;
  originalId: string | null;
  context: string | null;
  answer: Answer | null;
  seenAt: number | null;
  /** Only for a vendor's own request, which ends with the process of this fence. */
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

/**
 * A runner's right to a session, for one agent process. Its id is the marker in that process's environment.
 */
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
   * While the agent runs (`pid` is set): its descendants that do not carry its marker. Afterwards: processes
   * that could not be stopped.
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
  /** Only for an API key: what it may do, and in which scope; null means everything. */
  can: TokenRight[] | null;
  scope: string | null;
  /**
   * Only for an API key: the highest permission of its sessions, and the folders they may work in; null means
   * any.
   */
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
  /** The highest transaction number of the removed events; 0 if none was removed. */
  prunedXid: number;
}

/** What the turns of a session, and those of the sessions below it, have used or reserved of its budget. */
export interface Spent {
  tokens: number;
  usd: number;
  /** Reserved by running turns. */
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
  /** Trees with an open round. */
  families: number;
}

/**
 * A session or sub-agent that a reader found on disk. `imported`: it has a session in the store. `ours`:
 * Kinfold runs it or it is attached, so only its facts are kept. The other kinds are left out: `excluded` on
 * request, `internal` as the agent's own bookkeeping, `empty` because it has no content yet.
 */
export interface HistoryRecord {
  no: number;
  key: string;
  node: string;
  agent: string;
  /** The id that the agent gave it. */
  agentId: string;
  format: string;
  path: string;
  /** The reader's description of the file, passed back to it unchanged. */
  found: Record<string, unknown>;
  /** The key of the session at the top of its family, even if that session's file is missing. */
  familyKey: string;
  /** For a sub-agent whose rows are in another session's file: the key of that file. */
  hostKey: string | null;
  sessionId: string;
  rootId: string;
  kind: "imported" | "ours" | "excluded" | "internal" | "empty";
  stamp: string;
  /** The stamp up to which it was read; null if only its head and tail were read. */
  readStamp: string | null;
  sizeBytes: number;
  readBytes: number;
  /** Only for a sub-agent. */
  status: AgentStatus | null;
  /** Sub-agents that calls in this file started but that have no file. */
  missing: AgentStatus[] | null;
  badCount: number;
  bad: { line: number | null; byteOffset: number | null; reason: string }[] | null;
  problem: string | null;
  changedAt: number;
  goneAt: number | null;
  /** The facts that the reader found; opaque here. */
  facts: Record<string, unknown> | null;
  /** The position at which the reader continues; opaque here. */
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
  /** Facts about its session, if it has one; `state` comes from its evidence. */
  state: string | null;
  depth: number | null;
  parentId: string | null;
  cwd: string | null;
  scope: string | null;
}

/** A request to read what agents left on disk. */
export interface HistoryAsked {
  exclude: string[];
  /** Incremented to request a complete new scan. */
  count: number;
  at: number;
}
