import type { Answer } from "../contract/index.ts";
import { Refusal } from "../contract/refusal.ts";
import { releases } from "../domain/session.ts";
import { deadlinesOf, isBlocking, needsNoAnswer } from "../domain/trigger.ts";
import { redactBriefly } from "../secrets/redact-long.ts";
import { type TriggerSender, renderAnswer, renderAnswered, renderTrigger } from "../domain/trigger-text.ts";
import type { MessageRecord, SessionRecord, TriggerRecord, Tx } from "../store/port/store.ts";
import { admit, makeVoid } from "./admit.ts";
import { newTrigger } from "./callback.ts";
import { noteAnswered } from "./form-entry.ts";
import { closeIfOver } from "./round.ts";
import { excerpt } from "../secrets/redact.ts";

/** Names the person as the author of an answer. No session or API key may have this name. */
export const THE_USER = "the user";

interface Raise {
  readonly type: string;
  readonly payload: Record<string, unknown>;
  readonly default: string | null;
  /** Set only for a vendor's own request: the fence of the process that waits for the answer. */
  readonly fence: number | null;
  /** Only the person may decide the question. */
  readonly personOnly: boolean;
  readonly parentMs: number;
  readonly defaultMs: number;
  /** Maximum number of open triggers per session. */
  readonly openMax: number;
  readonly now: number;
}

/** Raises a question: writes its row, and sends it to the parent if the parent can be asked. */
export async function raise(tx: Tx, session: SessionRecord, order: Raise): Promise<TriggerRecord> {
  if ((await tx.triggers.openCount(session.id)) >= order.openMax) throw tooManyOpen(order.openMax);
  const parent = order.personOnly ? null : await askableParent(tx, session);
  const toPerson = parent === null || !isWakenBy(parent, session);
  const { type, payload, fence, now } = order;
  const deadlines = deadlinesOf({ ...order, raisedAt: now, takenAt: null, toPerson });
  const asked = { type, payload, default: order.default, fence, ...deadlines, now };
  const row = newTrigger({ ...asked, sessionId: session.id, toId: parent?.id ?? null, round: session.round });
  const trigger: TriggerRecord = { ...row, rootId: tx.rootId, toPerson };
  await tx.triggers.add(trigger);
  opened(tx, trigger, now);
  if (parent !== null) await sendTrigger(tx, parent, { trigger, now, delivery: "steer" });
  return trigger;
}

function tooManyOpen(max: number): Refusal {
  return new Refusal(
    "limit_requests",
    `${max} questions of this session are already waiting for an answer, the most that may be open at once; this one was not asked. Continue without an answer, or end your turn: each answer comes as a message.`,
    { requestsMax: max },
  );
}

/** Called when a turn takes a message. Starts the time to answer a question; marks an answer as seen. */
export async function startClock(
  tx: Tx,
  message: MessageRecord,
  at: { parentMs: number; now: number },
): Promise<void> {
  const id = message.metadata["triggerId"];
  if (typeof id !== "string") return;
  if (message.kind === "answer") await tx.triggers.seen(id, at.now);
  if (message.kind !== "trigger") return;
  const trigger = await tx.triggers.byId(id);
  if (trigger === null || trigger.toPerson || trigger.personAt === null) return;
  await tx.triggers.patch(id, { personAt: Math.min(trigger.personAt, at.now + at.parentMs) });
}

/** Called when the parent's deadline has passed: asks a person too. The parent may still answer. */
export async function askPerson(tx: Tx, trigger: TriggerRecord, now: number): Promise<void> {
  if (await tx.triggers.patch(trigger.id, { toPerson: true, personAt: now }))
    opened(tx, { ...trigger, toPerson: true }, now);
}

/**
 * Closes a trigger by compare-and-set; returns false if it was already closed. The answer becomes a message
 * to the asker (see `becomesMessage`). If the asker's tool call still waits for the answer, the call returns
 * that message.
 */
export async function closeTrigger(
  tx: Tx,
  trigger: TriggerRecord,
  end: { status: "answered" | "defaulted" | "withdrawn"; answer: Answer | null; now: number },
): Promise<boolean> {
  const { status, answer, now } = end;
  if (!(await tx.triggers.close(trigger.id, { status, answer, closedAt: now }))) return false;
  closed(tx, trigger, end);
  for (const other of await tx.triggers.openPairOf(trigger)) {
    if (await tx.triggers.close(other.id, { status, answer, closedAt: now })) closed(tx, other, end);
  }
  const origin = trigger.originalId === null ? trigger : await tx.triggers.byId(trigger.originalId);
  if (origin === null) return true;
  const asker = await tx.sessions.byId(origin.sessionId);
  if (asker !== null) await notifyReader(tx, asker, { trigger: origin, ...end });
  if (asker === null || asker.endedAt !== null) return true;
  if (answer !== null && becomesMessage(origin))
    await admitAnswer(tx, asker, { trigger: origin, answer, now });
  else if (answer !== null) {
    const by = await senderKindOf(tx, answer);
    await noteAnswered(tx, origin, { answer, author: by === "outside" ? "person" : by, at: now });
  }
  tx.wake(asker.id);
  await closeIfOver(tx, asker.id, now);
  if (origin.toId !== null) await closeIfOver(tx, origin.toId, now);
  return true;
}

/**
 * Runs when a question is closed, for the session that was asked. If the question is still in that session's
 * inbox, it becomes void; otherwise it would still look open. If the session has seen the question and
 * another caller answered it, the session gets a notice with the answer.
 */
async function notifyReader(
  tx: Tx,
  asker: SessionRecord,
  { trigger, answer, now }: { trigger: TriggerRecord; answer: Answer | null; now: number },
): Promise<void> {
  if (trigger.toId === null || trigger.toId === trigger.sessionId) return;
  const wasUnread = await voidUnread(tx, trigger, now);
  // A reader who escalated the question was promised the answer, and gets the notice even if the question is
  // still in its inbox.
  if (wasUnread && !(await tx.triggers.isPassedOn(trigger.id))) return;
  const reader = await tx.sessions.byId(trigger.toId);
  if (answer === null || answer.callerId === trigger.toId || needsNoAnswer(trigger.type)) return;
  if (reader === null || reader.endedAt !== null) return;
  const sender = { senderKind: "daemon", senderId: null } as const;
  const body = renderAnswered({
    type: trigger.type,
    asked: askedText(trigger),
    who: asker.name ?? asker.shortId,
    shortId: asker.shortId,
    by: answer.by,
    what: redactBriefly(String(answer.action ?? answer.response ?? JSON.stringify(answer.answers))),
  });
  const metadata = { triggerId: trigger.id };
  await admit(tx, reader, { now, kind: "notice", ...sender, delivery: "followUp", body, metadata });
}

/**
 * Makes a closed question void if its reader has not taken it yet. Returns whether it was unread. A trigger
 * that nobody waits on stays in the inbox, because it is information.
 */
export async function voidUnread(tx: Tx, trigger: TriggerRecord, now: number): Promise<boolean> {
  if (trigger.toId === null) return false;
  const queued = await tx.messages.ofSession(trigger.toId, ["queued"]);
  const unread = queued.find((each) => each.kind === "trigger" && each.metadata["triggerId"] === trigger.id);
  if (unread === undefined) return false;
  if (isBlocking(trigger.type)) await makeVoid(tx, unread, { reason: "it was answered or withdrawn", now });
  return true;
}

/**
 * Whether an answer becomes a message to the asker. There are three cases without a message: a vendor's own
 * request, whose process receives the answer directly; the report of an end or an error, which asks nothing;
 * and a trigger from outside, whose answer is read from its row.
 */
function becomesMessage({ type, fence, sessionId, toId }: TriggerRecord): boolean {
  return fence === null && !needsNoAnswer(type) && toId !== sessionId;
}

/** Withdraws the requests of a process that is gone and could not receive an answer. */
export async function withdrawOf(
  tx: Tx,
  sessionId: string,
  { fence, now }: { fence: number; now: number },
): Promise<void> {
  for (const trigger of await tx.triggers.open({ sessionId, fence })) {
    await closeTrigger(tx, trigger, { status: "withdrawn", answer: null, now });
  }
  await tx.triggers.unheard(sessionId, fence);
}

export async function admitAnswer(
  tx: Tx,
  asker: SessionRecord,
  { trigger, answer, now }: { trigger: TriggerRecord; answer: Answer; now: number },
): Promise<void> {
  const senderKind = await senderKindOf(tx, answer);
  await admit(tx, asker, {
    now,
    kind: "answer",
    senderKind,
    senderId: answer.callerId,
    delivery: "followUp",
    body: null,
    data: { ...answer, type: trigger.type, asked: askedText(trigger), isData: senderKind !== "person" },
    metadata: { triggerId: trigger.id, action: answer.action },
  });
}

async function senderKindOf(tx: Tx, { callerId, by }: Answer): Promise<MessageRecord["senderKind"]> {
  if (callerId === null) return "daemon";
  if ((await tx.sessions.byId(callerId)) !== null) return "session";
  return by === THE_USER ? "person" : "outside";
}

/** Describes the question in one line. */
export function askedText(trigger: Pick<TriggerRecord, "type" | "payload">): string {
  const { payload } = trigger;
  const questions = payload["questions"];
  if (Array.isArray(questions)) return String((questions[0] as { question?: string })?.question ?? "");
  return String(payload["title"] ?? payload["command"] ?? payload["tool"] ?? trigger.type);
}

/** Puts a trigger into the inbox of the session that it asks. */
export async function sendTrigger(
  tx: Tx,
  reader: SessionRecord,
  { trigger, now, delivery }: { trigger: TriggerRecord; now: number; delivery: "steer" | "followUp" },
): Promise<MessageRecord> {
  const { sessionId, type, payload, defaultAt } = trigger;
  const isOutside = sessionId === reader.id;
  return admit(tx, reader, {
    now,
    kind: "trigger",
    senderKind: isOutside ? "outside" : "session",
    senderId: isOutside ? null : sessionId,
    delivery,
    body: null,
    data: { type, payload, defaultAt, default: trigger.default },
    metadata: { triggerId: trigger.id, type },
  });
}

async function askableParent(tx: Tx, session: SessionRecord): Promise<SessionRecord | null> {
  if (session.parentId === null || session.detachedAt !== null) return null;
  const parent = await tx.sessions.byId(session.parentId);
  return parent === null || parent.endedAt !== null || parent.origin === "imported" ? null : parent;
}

/**
 * Whether a message of the child wakes its parent. If not, the person is asked too, because the parent may
 * never read the question.
 */
function isWakenBy(parent: SessionRecord, child: SessionRecord): boolean {
  return (
    parent.origin === "managed" && releases(parent.held, { kind: "session", id: child.id }, parent.parentId)
  );
}

function opened(tx: Tx, trigger: TriggerRecord, now: number): void {
  const { id, type, toId, toPerson } = trigger;
  const data = { triggerId: id, type, toId, toPerson, asked: excerpt(askedText(trigger), 400) };
  tx.append({ sessionId: trigger.sessionId, type: "trigger.opened", data, at: now });
}

function closed(
  tx: Tx,
  trigger: TriggerRecord,
  end: { status: string; answer: Answer | null; now: number },
): void {
  const data = { triggerId: trigger.id, type: trigger.type, status: end.status, by: end.answer?.by ?? null };
  tx.append({ sessionId: trigger.sessionId, type: "trigger.closed", data, at: end.now });
}

type TriggerMessage = Pick<
  MessageRecord,
  "kind" | "data" | "deliveryId" | "repeated" | "senderId" | "metadata" | "admittedAt"
>;

/** Renders a trigger or an answer as text when a turn takes it; returns null for other messages. */
export async function triggerBody(
  tx: Tx,
  reader: SessionRecord,
  message: TriggerMessage,
): Promise<string | null> {
  const { data, deliveryId, repeated } = message;
  if (data === null) return null;
  if (message.kind === "trigger") {
    const defaultAt = typeof data["defaultAt"] === "number" ? data["defaultAt"] : null;
    return renderTrigger(String(data["type"]), data["payload"] as Record<string, unknown>, {
      deliveryId,
      repeated,
      sender: await senderOf(tx, reader, message),
      defaultInMs: defaultAt === null ? null : Math.max(0, defaultAt - message.admittedAt),
    });
  }
  if (message.kind !== "answer") return null;
  return renderAnswer({
    deliveryId,
    repeated,
    type: String(data["type"]),
    asked: String(data["asked"] ?? ""),
    by: String(data["by"] ?? ""),
    action: (data["action"] as string | null) ?? null,
    response: (data["response"] as string | null) ?? null,
    answers: (data["answers"] as Record<string, unknown> | null) ?? null,
    isData: data["isData"] === true,
  });
}

async function senderOf(tx: Tx, reader: SessionRecord, message: TriggerMessage): Promise<TriggerSender> {
  const sender = message.senderId === null ? null : await tx.sessions.byId(message.senderId);
  if (sender === null) {
    const name = message.metadata["outside"];
    return { kind: "outside", name: typeof name === "string" ? name : "outside", shortId: null, agent: null };
  }
  const agent = sender.model === null ? sender.agent : `${sender.agent} ${sender.model}`;
  const kind = sender.parentId === reader.id ? "child" : "session";
  return { kind, name: sender.name ?? sender.shortId, shortId: sender.shortId, agent };
}
