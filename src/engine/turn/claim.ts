import type { EntryKind } from "../../contract/index.ts";
import {
  type BatchItem,
  type CallbackData,
  batchLength,
  renderBatch,
  renderCallback,
  withMessageLine,
} from "../../domain/callback.ts";
import { visible, withoutDeliveryLines, withoutOurLines } from "../../text/fence.ts";
import { land, openRound } from "../../kernel/admit.ts";
import { appendEntries } from "../../kernel/entry.ts";
import { startClock, triggerBody } from "../../kernel/trigger.ts";
import { callbacksKnown } from "../../kernel/stop-report.ts";
import {
  type MessageRecord,
  type NewEntry,
  STALE,
  type SessionRecord,
  type TurnRecord,
  type Tx,
} from "../../store/port/store.ts";
import { type ProcessLease, newProcessLease } from "../agent/process-lease.ts";
import type { EngineDeps } from "../deps.ts";
import { reserveTurn } from "../usage/reservation.ts";
import { excerpt } from "../../secrets/redact.ts";
import { newId } from "../../system/id.ts";
import { NO_USAGE } from "../../contract/no-usage.ts";

const BATCH_MAX = 16;

export interface Claim {
  readonly session: SessionRecord;
  readonly turn: TurnRecord;
  readonly lease: ProcessLease;
  readonly text: string;
}

/** Takes the first messages of an inbox into a new turn, in one transaction, before the agent gets them. */
export async function claim(
  deps: EngineDeps,
  candidate: SessionRecord,
  current: ProcessLease | null,
): Promise<Claim | null> {
  // The write is refused if the process was replaced or `candidate` is outdated.
  const by = current ?? { session: candidate.id, fence: candidate.fence };
  const claimed = await deps.store.write(candidate.rootId, by, async (tx) => {
    const session = await tx.sessions.byId(candidate.id);
    if (session === null || session.endedAt !== null || session.held !== null || session.parked !== null)
      return null;
    if ((await tx.turns.running(session.id)) !== null) return null;
    const { batch } = session.callback;
    const queued = await tx.messages.queued(session.id, batch ? BATCH_MAX : 1);
    const next = batch ? callbackRun(queued) : queued;
    const messages = next.some(isOfCancelled) ? await callbacksKnown(tx, next, deps.now()) : next;
    if (messages === null || messages.length === 0) return null;
    const reserved = await reserveTurn(deps, tx, session);
    if (reserved === null) return null;
    // Every turn belongs to a round; otherwise no callback would report it.
    if (!session.roundOpen) await openRound(tx, session, deps.now());
    const lease = current ?? (await newProcessLease(deps, tx, session));
    const rendered = await render(tx, session, messages);
    const { text } = rendered;
    const turn = await addTurn(deps, tx, { session, lease, text, messages, reserved });
    await takeAll(deps, tx, { turn, rendered });
    return { session, turn, lease, text };
  });
  return claimed === STALE ? null : claimed;
}

/** Whether the message reports a cancelled child, whose processes may still be stopping. */
function isOfCancelled({ data }: MessageRecord): boolean {
  return data?.["outcome"] === "cancelled";
}

export interface Rendered {
  readonly text: string;
  readonly bodies: readonly { message: MessageRecord; body: string }[];
  /** Notices about templates that were replaced by the default. */
  readonly notices: readonly string[];
}

export async function render(
  tx: Tx,
  session: SessionRecord,
  messages: readonly MessageRecord[],
): Promise<Rendered> {
  const awaited = await tx.sessions.awaitedChildren(session.id);
  const stillAtWork = awaited.map((child) => child.name ?? child.shortId);
  const hasReported = await hasSaid(tx, session);
  const context = { stillAtWork, wakeable: true, hasReported };
  const notices: string[] = [];
  const bodies: { message: MessageRecord; body: string }[] = [];
  for (const message of messages) {
    const isTrigger = message.kind === "trigger" || message.kind === "answer";
    const own = isTrigger ? await triggerBody(tx, session, message) : null;
    const { body, notice } = own === null ? bodyOf(message, context) : { body: own, notice: null };
    if (notice !== null) notices.push(notice);
    bodies.push({ message, body });
  }
  const isBatch = messages.length > 1 && messages.every((message) => message.kind === "callback");
  const text = isBatch
    ? renderBatch(messages.map(batchItem), context).text
    : bodies.map((each) => each.body).join("\n\n");
  return { text, bodies, notices };
}

/** Whether the last turn of the open round wrote a message, which is the round's report so far. */
async function hasSaid(tx: Tx, session: SessionRecord): Promise<boolean> {
  const last = await tx.turns.last(session.id);
  return last?.round === session.round && last.lastAssistantMessage !== null;
}

function bodyOf(
  message: MessageRecord,
  context: { stillAtWork: readonly string[]; wakeable: boolean; hasReported: boolean },
): { body: string; notice: string | null } {
  if (message.kind === "callback" && message.data !== null) {
    const { data, deliveryId, repeated } = batchItem(message);
    const { text, notice } = renderCallback(data, { ...context, deliveryId, repeated });
    return { body: text, notice };
  }
  const words = wordsOf(message);
  const marked = message.repeated ? `[Kinfold] You may have seen this already.\n${words}` : words;
  return { body: withMessageLine(marked, message.deliveryId), notice: null };
}

/**
 * Returns a message's text without lines that only the daemon may write, such as delivery ids. Text from
 * another session also loses its invisible characters.
 */
function wordsOf({ body, senderKind }: MessageRecord): string {
  const text = body ?? "";
  if (senderKind === "daemon") return text;
  return senderKind === "person" ? withoutDeliveryLines(text) : withoutOurLines(visible(text));
}

function batchItem(message: MessageRecord): BatchItem {
  const { deliveryId, repeated } = message;
  return { data: message.data as unknown as CallbackData, deliveryId, repeated };
}

/**
 * Returns the callbacks at the head of the inbox that fit into one turn. If the first message is not a
 * callback, returns only that message.
 */
function callbackRun(queued: readonly MessageRecord[]): MessageRecord[] {
  const first = queued.findIndex((message) => message.kind !== "callback");
  const run = first === -1 ? [...queued] : queued.slice(0, first);
  return run.length === 0 ? queued.slice(0, 1) : run.slice(0, batchLength(run.map(batchItem)));
}

async function addTurn(
  deps: EngineDeps,
  tx: Tx,
  order: {
    session: SessionRecord;
    lease: ProcessLease;
    text: string;
    messages: readonly MessageRecord[];
    reserved: Pick<TurnRecord, "reservedTokens" | "reservedUsd">;
  },
): Promise<TurnRecord> {
  const { session, lease, messages } = order;
  const now = deps.now();
  const description = excerpt(messages[0]?.body ?? order.text, 120);
  const decided = { kind: "prompt", fence: lease.fence, description, ...order.reserved } as const;
  const turn = await tx.turns.add(newTurn(deps, session, decided));
  const evidence = { state: "working", reason: "starting its turn", confidence: "certain", at: now } as const;
  const patch = { lastActivityAt: now, updatedAt: now, evidence, backgroundUntil: null };
  await tx.sessions.patch(session.id, patch);
  const data = { turnId: turn.id, index: turn.index, round: turn.round, messages: messages.length };
  tx.append({ sessionId: session.id, type: "turn.started", data, at: now });
  return turn;
}

async function takeAll(
  deps: EngineDeps,
  tx: Tx,
  { turn, rendered }: { turn: TurnRecord; rendered: Rendered },
): Promise<void> {
  const now = deps.now();
  const { id: turnId, sessionId } = turn;
  const notices = rendered.notices.map((text) => noticeOf(text, { turnId, at: now }));
  for (const { message, body } of rendered.bodies) {
    const patch = { status: "taken", carrier: "prompt", turnId, takenAt: now } as const;
    await tx.messages.move(message.id, ["queued"], message.body === null ? { ...patch, body } : patch);
    await startClock(tx, message, { parentMs: deps.config.triggers.parentMs, now });
    const data = { messageId: message.id, carrier: "prompt", turnId };
    tx.append({ sessionId, type: "message.taken", data, at: now });
  }
  await appendEntries(tx, sessionId, notices);
  await appendMessages(tx, turn, { bodies: rendered.bodies, now });
}

/** Adds each message to the transcript once. If it is sent again, adds a notice that names its entry. */
export async function appendMessages(
  tx: Tx,
  turn: Pick<TurnRecord, "id" | "sessionId">,
  { bodies, now }: { bodies: Rendered["bodies"]; now: number },
): Promise<void> {
  const at = { turnId: turn.id, at: now };
  const entries = bodies.map(({ message, body }) =>
    message.entryIndex === null
      ? entryOf(message, body, at)
      : noticeOf(`the message in entry ${message.entryIndex} was sent again`, at),
  );
  const appended = await appendEntries(tx, turn.sessionId, entries);
  for (const [index, { message }] of bodies.entries()) {
    if (message.entryIndex !== null) continue;
    await tx.messages.move(message.id, ["taken"], { entryIndex: appended[index]!.index });
  }
}

/** Marks a message as landed. Adds a steered message's entry if the agent died before acknowledging it. */
export async function landInTranscript(tx: Tx, message: MessageRecord, now: number): Promise<void> {
  const isInPrompt = message.carrier === "prompt" || message.carrier === "steer";
  if (isInPrompt && message.entryIndex === null && message.turnId !== null) {
    const turn = { id: message.turnId, sessionId: message.sessionId };
    await appendMessages(tx, turn, { bodies: [{ message, body: message.body ?? "" }], now });
  }
  await land(tx, message, now);
}

function noticeOf(text: string, at: { turnId: string; at: number }): NewEntry {
  return { ...at, author: "daemon", kind: "notice", body: { text }, isSubagent: false };
}

function entryOf(message: MessageRecord, body: string, at: { turnId: string; at: number }): NewEntry {
  const author = message.senderKind === "outside" ? "person" : message.senderKind;
  const text = { text: message.body ?? body, messageId: message.id };
  return { ...at, author, kind: kindOf(message), body: text, isSubagent: false };
}

function kindOf(message: MessageRecord): EntryKind {
  if (message.kind === "callback" || message.kind === "trigger") return message.kind;
  return message.kind === "notice" ? "notice" : "text";
}

type Decided = Pick<TurnRecord, "kind" | "fence" | "description" | "reservedTokens" | "reservedUsd">;

export function newTurn(
  { store, now }: EngineDeps,
  session: SessionRecord,
  decided: Decided,
): Omit<TurnRecord, "rootId" | "index"> {
  return {
    id: newId(),
    sessionId: session.id,
    round: session.round,
    status: "running",
    node: store.node,
    boot: store.boot,
    attempt: 1,
    attemptsBegun: 0,
    reportedAttempt: 0,
    servedAttempt: 0,
    attemptFrom: session.entryCount,
    startedAt: now(),
    settledAt: null,
    error: null,
    stopReason: null,
    lastAssistantMessage: null,
    entryFrom: session.entryCount,
    entryTo: null,
    toolUseCount: 0,
    usage: NO_USAGE,
    receipt: null,
    blocked: 0,
    stopBy: null,
    stopNote: null,
    ...decided,
  };
}
