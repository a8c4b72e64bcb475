import { uuidv7 } from "uuidv7";
import { CallbackConfig, shortId } from "../../contract/index.ts";
import { NEW_SESSION, unmanagedEffective } from "../port/new-session.ts";
import type {
  LeaseRecord,
  MessageRecord,
  NewEvent,
  NewMessage,
  SessionRecord,
  TriggerRecord,
  TurnRecord,
} from "../port/store.ts";

const EFFECTIVE = unmanagedEffective({ agent: "sim", node: "local", cwd: "/", permission: "workspace" });
const CALLBACK = CallbackConfig.parse({});

/** Returns a complete record, with defaults for everything that a test does not set. */
export function aSession(fields: Partial<SessionRecord> = {}): SessionRecord {
  const id = fields.id ?? uuidv7();
  return {
    ...NEW_SESSION,
    id,
    rootId: fields.rootId ?? id,
    parentId: null,
    shortId: shortId(id),
    name: null,
    depth: 0,
    spawnConfig: { asked: true },
    effective: EFFECTIVE,
    title: null,
    agent: "sim",
    profile: "default",
    model: null,
    cwd: "/",
    node: "local",
    origin: "managed",
    source: "http",
    scope: "default",
    callback: CALLBACK,
    onParentEnd: "cancel",
    round: 1,
    roundOpen: true,
    roundOpenedAt: 1,
    evidence: { state: "idle", reason: "made by a test", confidence: "certain", at: 1 },
    seen: true,
    createdAt: 1_790_000_000_000,
    updatedAt: 1_790_000_000_000,
    lastActivityAt: 1_790_000_000_000,
    key: null,
    keyCaller: null,
    keyHash: null,
    ...fields,
  };
}

export function aChild(parent: SessionRecord, fields: Partial<SessionRecord> = {}): SessionRecord {
  return aSession({ rootId: parent.rootId, parentId: parent.id, depth: parent.depth + 1, ...fields });
}

export function aMessage(sessionId: string, fields: Partial<MessageRecord> = {}): NewMessage {
  const id = fields.id ?? uuidv7();
  return {
    id,
    sessionId,
    kind: "prompt",
    senderKind: "person",
    senderId: null,
    delivery: "followUp",
    status: "queued",
    carrier: null,
    deliveryId: id,
    key: null,
    keyCaller: null,
    keyHash: null,
    callbackKey: null,
    turnId: null,
    body: "hello",
    data: null,
    metadata: {},
    repeated: false,
    voidReason: null,
    admittedAt: 1_790_000_000_000,
    takenAt: null,
    landedAt: null,
    entryIndex: null,
    ...fields,
  };
}

export function aTurn(
  sessionId: string,
  fields: Partial<TurnRecord> = {},
): Omit<TurnRecord, "rootId" | "index"> {
  return {
    id: uuidv7(),
    sessionId,
    round: 1,
    kind: "prompt",
    status: "running",
    node: "local",
    boot: "boot",
    fence: 1,
    attempt: 1,
    attemptsBegun: 0,
    reportedAttempt: 0,
    servedAttempt: 0,
    attemptFrom: 0,
    description: "a turn",
    startedAt: 1_790_000_000_000,
    settledAt: null,
    error: null,
    stopReason: null,
    lastAssistantMessage: null,
    entryFrom: 0,
    entryTo: null,
    toolUseCount: 0,
    usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd: null },
    reservedTokens: null,
    reservedUsd: null,
    receipt: null,
    blocked: 0,
    stopBy: null,
    stopNote: null,
    ...fields,
  };
}

export function aLease(sessionId: string, fields: Partial<LeaseRecord> = {}): Omit<LeaseRecord, "rootId"> {
  return {
    id: uuidv7(),
    sessionId,
    node: "local",
    boot: "boot",
    fence: 1,
    pid: null,
    startTime: null,
    descendants: [],
    openedAt: 1_790_000_000_000,
    ...fields,
  };
}

export function anEvent(sessionId: string, fields: Partial<NewEvent> = {}): NewEvent {
  return { sessionId, type: "notice", text: null, data: {}, at: 1_790_000_000_000, ...fields };
}

export function aTrigger(
  sessionId: string,
  fields: Partial<TriggerRecord> = {},
): Omit<TriggerRecord, "rootId"> {
  return {
    id: uuidv7(),
    sessionId,
    toId: null,
    toPerson: true,
    type: "ask_user_question",
    payload: {},
    status: "open",
    round: 1,
    personAt: null,
    defaultAt: null,
    default: null,
    originalId: null,
    context: null,
    answer: null,
    seenAt: null,
    fence: null,
    createdAt: 1,
    closedAt: null,
    ...fields,
  };
}
