import { reserve } from "../domain/budget.ts";
import type { MessageRecord, Parked, Reads, SessionRecord, Tx, TriggerRecord } from "../store/port/store.ts";
import { admit } from "./admit.ts";
import { accountsOf } from "./budget.ts";
import { tellOf } from "./trigger.ts";
import { newTrigger } from "./callback.ts";

export interface ErrorPayload {
  readonly error: string;
  readonly kind: "limit" | "provider" | "crash" | "budget" | "silence" | "other";
  readonly resetAt?: number;
  /** How long it waits before it goes on by itself. */
  readonly waitMs?: number;
}

/** An error goes up as a trigger row and an event. */
export async function raiseError(
  tx: Tx,
  session: SessionRecord,
  { error, now }: { error: ErrorPayload; now: number },
): Promise<TriggerRecord> {
  const payload = { ...error, model: session.model };
  const { id: sessionId, parentId: toId, round } = session;
  const row = newTrigger({ sessionId, toId, type: "session_error", payload, round, now });
  await tx.triggers.add(row);
  const data = { triggerId: row.id, type: "session_error", ...payload };
  tx.append({ sessionId, type: "trigger.opened", text: null, data, at: now });
  return { ...row, rootId: tx.rootId };
}

/**
 * Nothing is taken from its inbox until the limit is over or there is something to reserve again.
 * Its round stays open, so its error is a message of its own to whoever waits for it.
 */
export async function park(
  tx: Tx,
  session: SessionRecord,
  { parked, error }: { parked: Parked; error: ErrorPayload },
): Promise<void> {
  await parkForRetry(tx, session, parked);
  if (await wasTold(tx, session, parked.on)) return;
  await raiseAndTell(tx, session, { error, now: parked.since });
}

/** Nothing is heard from a working session: its parent and the person are told, until it is heard again. */
export async function raiseSilence(
  tx: Tx,
  session: SessionRecord,
  { error, now }: { error: string; now: number },
): Promise<void> {
  const trigger = await raiseAndTell(tx, session, { error: { error, kind: "silence" }, now });
  await tx.triggers.patch(trigger.id, { toPerson: true });
}

/** What was said of a session's silence holds no more. */
export async function withdrawSilence(tx: Tx, session: SessionRecord, now: number): Promise<void> {
  await withdrawErrors(tx, session, { now, isWanted: ({ payload }) => payload["kind"] === "silence" });
}

/** As a message of its own to whoever waits for the session, too: its round stays open. */
async function raiseAndTell(
  tx: Tx,
  session: SessionRecord,
  { error, now }: { error: ErrorPayload; now: number },
): Promise<TriggerRecord> {
  const trigger = await raiseError(tx, session, { error, now });
  const parent = session.parentId === null ? null : await tx.sessions.byId(session.parentId);
  const isHeard =
    parent !== null && parent.endedAt === null && session.detachedAt === null && session.callback.enabled;
  if (isHeard) await tellOf(tx, parent, { trigger, now, delivery: "followUp" });
  return trigger;
}

/** A provider in trouble: its turn is tried again by itself, so nobody is told yet. It is seen in its status. */
export async function parkForRetry(tx: Tx, session: SessionRecord, parked: Parked): Promise<void> {
  const now = parked.since;
  const evidence = { state: "parked", reason: parked.reason, confidence: "certain", at: now } as const;
  session.parked = parked;
  await tx.sessions.patch(session.id, { parked, evidence, updatedAt: now });
  changed(tx, session, now);
  tx.wake(session.id);
}

/** Which retry a message asks for; 0 where it is none. */
export function retryIn(message: MessageRecord): number {
  const retry = message.kind === "notice" ? message.data?.["retry"] : null;
  return typeof retry === "number" ? retry : 0;
}

/** It goes on: after a vendor's limit with words of the daemon's own, since no agent does so by itself. */
export async function unpark(tx: Tx, session: SessionRecord, now: number): Promise<void> {
  const { parked } = session;
  if (parked === null) return;
  session.parked = null;
  await tx.sessions.patch(session.id, { parked: null, updatedAt: now });
  await withdrawErrors(tx, session, { now, isWanted: () => true });
  changed(tx, session, now);
  tx.wake(session.id);
  if (parked.on !== "limit" || !session.roundOpen || session.endedAt !== null) return;
  const { retry = null } = parked;
  const body = retry === null ? GO_ON : await retryWords(tx, session);
  const data = retry === null ? null : { retry };
  const sender = { senderKind: "daemon", senderId: null } as const;
  await admit(tx, session, { now, kind: "notice", ...sender, delivery: "followUp", body, data });
}

/** A turn that had called tools is continued. Before that it may be forgotten by its agent, so it is repeated. */
async function retryWords(tx: Tx, session: SessionRecord): Promise<string> {
  const turn = await tx.turns.last(session.id);
  if (turn === null || turn.toolUseCount > 0) return RETRY_GO_ON;
  const messages = await tx.messages.ofTurn(turn.id);
  const words = messages.map((each) => taskIn(each)).filter((each) => each !== "");
  return words.length === 0 ? RETRY_GO_ON : [RETRY_ANEW, ...words].join("\n\n");
}

/** Without our own line above the task, where it was repeated before. */
function taskIn(message: MessageRecord): string {
  const body = message.body ?? "";
  if (retryIn(message) === 0) return body;
  return body.startsWith(`${RETRY_ANEW}\n\n`) ? body.slice(RETRY_ANEW.length + 2) : "";
}

/** Something was freed or a limit was raised: those that can reserve again go on. */
export async function retryBudgets(tx: Tx, rootId: string, now: number): Promise<void> {
  for (const session of await tx.sessions.parkedIn(rootId)) {
    if (session.parked?.on !== "budget") continue;
    const nothing = { usd: 0, tokens: 0 };
    if (reserve(await accountsOf(tx, session), { largest: nothing, floor: nothing }).ok)
      await unpark(tx, session, now);
  }
}

const RETRY_GO_ON =
  "[Kinfold] Your model's provider was in trouble, and your turn was cut. Go on with it where it was; calls that were cut may have taken effect and must be checked before they are repeated.";
const RETRY_ANEW =
  "[Kinfold] Your model's provider was in trouble before you could begin. Here is your task again; you may have seen it already.";

export const GO_ON =
  "[Kinfold] The usage limit is over. Go on with your turn where it was; calls that were cut may have taken effect and must be checked before they are repeated.";

function changed(tx: Tx, session: SessionRecord, now: number): void {
  const data = { parked: session.parked };
  tx.append({ sessionId: session.id, type: "session.updated", text: null, data, at: now });
}

/** The open error of a parked session: what whoever waits for it must know. */
export async function parkedError(
  reads: Pick<Reads, "triggers">,
  session: SessionRecord,
): Promise<TriggerRecord | null> {
  if (session.parked === null) return null;
  const triggers = await reads.triggers.ofSession(session.id);
  const isIt = (each: TriggerRecord): boolean => each.type === "session_error" && each.status === "open";
  return triggers.findLast((each) => isIt(each) && each.round === session.round) ?? null;
}

/** Of one budget in one round it tells once, however often it finds it empty; of a vendor's limit each time. */
async function wasTold(tx: Tx, session: SessionRecord, on: Parked["on"]): Promise<boolean> {
  if (on === "limit") return false;
  const triggers = await tx.triggers.ofSession(session.id);
  return triggers.some(
    (each) =>
      each.type === "session_error" && each.round === session.round && each.payload["kind"] === "budget",
  );
}

async function withdrawErrors(
  tx: Tx,
  session: SessionRecord,
  of: { now: number; isWanted: (trigger: TriggerRecord) => boolean },
): Promise<void> {
  const { now } = of;
  for (const trigger of await tx.triggers.ofSession(session.id)) {
    const isOfRound = trigger.type === "session_error" && trigger.round === session.round;
    if (!isOfRound || trigger.status !== "open" || !of.isWanted(trigger)) continue;
    await tx.triggers.close(trigger.id, { status: "withdrawn", closedAt: now });
    const data = { triggerId: trigger.id, type: trigger.type, status: "withdrawn", by: null };
    tx.append({ sessionId: session.id, type: "trigger.closed", text: null, data, at: now });
  }
}
