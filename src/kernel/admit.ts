import { releases } from "../domain/session.ts";
import { isBlocking } from "../domain/trigger.ts";
import type { MessageRecord, NewMessage, SessionRecord, Tx } from "../store/port/store.ts";
import { newDeliveryId, newId } from "../system/id.ts";

export type Admission = Pick<NewMessage, "kind" | "senderKind" | "senderId" | "delivery" | "body"> &
  Partial<
    Pick<NewMessage, "key" | "keyCaller" | "keyHash" | "callbackKey" | "data" | "metadata" | "deliveryId">
  >;

/** Puts a message into an inbox. Opens a round, unless the inbox is held and the sender cannot release it. */
export async function admit(
  tx: Tx,
  session: SessionRecord,
  { now, ...admission }: Admission & { now: number },
): Promise<MessageRecord> {
  const message = await tx.messages.add(newMessage(session.id, admission, now));
  const { id: messageId, kind, position, senderId: from } = message;
  const data = { messageId, kind, position, from, ...admission.metadata };
  tx.append({ sessionId: session.id, type: "message.admitted", data, at: now });
  const sender = { kind: message.senderKind, id: from };
  // An attached session has an inbox but no rounds, because the daemon does not run it.
  if (session.origin === "managed" && releases(session.held, sender, session.parentId)) {
    if (session.held !== null) await tx.sessions.patch(session.id, { held: null });
    session.held = null;
    await openRound(tx, session, now);
  }
  tx.wake(session.id);
  return message;
}

export function newMessage(sessionId: string, admission: Admission, now: number): NewMessage {
  return {
    id: newId(),
    sessionId,
    status: "queued",
    carrier: null,
    deliveryId: newDeliveryId(),
    key: null,
    keyCaller: null,
    keyHash: null,
    callbackKey: null,
    turnId: null,
    data: null,
    metadata: {},
    repeated: false,
    voidReason: null,
    admittedAt: now,
    takenAt: null,
    landedAt: null,
    entryIndex: null,
    ...admission,
  };
}

/** Marks a message as void, with the reason: it will never be delivered. */
export async function makeVoid(
  tx: Tx,
  message: MessageRecord,
  { reason, now }: { reason: string; now: number },
): Promise<boolean> {
  const patch = { status: "void", voidReason: reason } as const;
  const isMoved = await tx.messages.move(message.id, ["queued", "taken"], patch);
  const data = { messageId: message.id, reason };
  if (isMoved) tx.append({ sessionId: message.sessionId, type: "message.void", data, at: now });
  return isMoved;
}

/**
 * Returns a taken message to its position in the inbox. Makes it void instead if its session has ended or its
 * question is closed. `repeated` means that the agent may have seen the message already.
 */
export async function giveBack(
  tx: Tx,
  message: MessageRecord,
  { repeated, now }: { repeated: boolean; now: number },
): Promise<boolean> {
  const session = await tx.sessions.byId(message.sessionId);
  if (session === null || session.endedAt !== null) {
    await makeVoid(tx, message, { reason: "the session has ended", now });
    return false;
  }
  if (await isClosedQuestion(tx, message)) {
    await makeVoid(tx, message, { reason: "it was answered or withdrawn", now });
    return false;
  }
  const { id: messageId, sessionId } = message;
  const untaken = { status: "queued", carrier: null, turnId: null, takenAt: null } as const;
  const patch = { ...untaken, repeated: message.repeated || repeated };
  if (!(await tx.messages.move(messageId, ["taken"], patch))) return false;
  tx.append({ sessionId, type: "message.returned", data: { messageId, repeated }, at: now });
  tx.wake(sessionId);
  return true;
}

/** Whether the message is a question that has been closed; if it were delivered again, it would look open. */
async function isClosedQuestion(tx: Tx, message: MessageRecord): Promise<boolean> {
  if (message.kind !== "trigger") return false;
  const trigger = await tx.triggers.byId(String(message.metadata["triggerId"]));
  return trigger !== null && isBlocking(trigger.type) && trigger.status !== "open";
}

export async function land(tx: Tx, message: MessageRecord, now: number): Promise<boolean> {
  const isMoved = await tx.messages.move(message.id, ["taken"], { status: "landed", landedAt: now });
  const data = { messageId: message.id, carrier: message.carrier };
  if (isMoved) tx.append({ sessionId: message.sessionId, type: "message.landed", data, at: now });
  return isMoved;
}

/** Opens a round if none is open, in the transaction that admits the message. */
export async function openRound(tx: Tx, session: SessionRecord, now: number): Promise<void> {
  if (session.roundOpen) return;
  const patch = { round: session.round + 1, roundOpen: true, roundOpenedAt: now, held: null, pausedMs: 0 };
  Object.assign(session, patch);
  await tx.sessions.patch(session.id, { ...patch, seen: false, updatedAt: now });
  tx.append({ sessionId: session.id, type: "round.opened", data: { round: session.round }, at: now });
}
