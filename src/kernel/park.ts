import { reserve } from "../domain/budget.ts";
import type { MessageRecord, Parked, Reads, SessionRecord, Tx, TriggerRecord } from "../store/port/store.ts";
import { admit } from "./admit.ts";
import { accountsOf } from "./budget.ts";
import { sendTrigger } from "./trigger.ts";
import { newTrigger } from "./callback.ts";

export interface ErrorPayload {
  readonly error: string;
  readonly kind: "limit" | "provider" | "crash" | "budget" | "silence" | "other";
  readonly resetAt?: number;
  /** How long the session waits before the daemon resumes it. */
  readonly waitMs?: number;
}

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
  tx.append({ sessionId, type: "trigger.opened", data, at: now });
  return { ...row, rootId: tx.rootId };
}

/**
 * Parks a session: nothing is taken from its inbox until the usage limit resets or there is budget again. The
 * round stays open, so no callback tells the parent; a separate message reports the error.
 */
export async function park(
  tx: Tx,
  session: SessionRecord,
  { parked, error }: { parked: Parked; error: ErrorPayload },
): Promise<void> {
  await parkForRetry(tx, session, parked);
  if (await wasReported(tx, session, parked.on)) return;
  await raiseAndSend(tx, session, { error, now: parked.since });
}

/** Reports to the parent and the person that a working session is silent; see `withdrawSilence`. */
export async function raiseSilence(
  tx: Tx,
  session: SessionRecord,
  { error, now }: { error: string; now: number },
): Promise<void> {
  const trigger = await raiseAndSend(tx, session, { error: { error, kind: "silence" }, now });
  await tx.triggers.patch(trigger.id, { toPerson: true });
}

export async function withdrawSilence(tx: Tx, session: SessionRecord, now: number): Promise<void> {
  await withdrawErrors(tx, session, { now, isWanted: ({ payload }) => payload["kind"] === "silence" });
}

/** Raises an error and sends it to the parent as a message. The open round sends no callback yet. */
async function raiseAndSend(
  tx: Tx,
  session: SessionRecord,
  { error, now }: { error: ErrorPayload; now: number },
): Promise<TriggerRecord> {
  const trigger = await raiseError(tx, session, { error, now });
  const parent = session.parentId === null ? null : await tx.sessions.byId(session.parentId);
  const mayNotify =
    parent !== null && parent.endedAt === null && session.detachedAt === null && session.callback.enabled;
  if (mayNotify) await sendTrigger(tx, parent, { trigger, now, delivery: "followUp" });
  return trigger;
}

/** Parks a session after a temporary error. The daemon retries later, so the parent gets no message. */
export async function parkForRetry(tx: Tx, session: SessionRecord, parked: Parked): Promise<void> {
  const now = parked.since;
  const evidence = { state: "parked", reason: parked.reason, confidence: "certain", at: now } as const;
  session.parked = parked;
  await tx.sessions.patch(session.id, { parked, evidence, updatedAt: now });
  changed(tx, session, now);
  tx.wake(session.id);
}

/** Returns the number of the retry that a message asks for; 0 if it is not a retry. */
export function retryIn(message: MessageRecord): number {
  const retry = message.kind === "notice" ? message.data?.["retry"] : null;
  return typeof retry === "number" ? retry : 0;
}

/** Resumes a parked session. After a vendor's limit the agent needs a prompt to go on, so it gets one. */
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

/**
 * Returns the prompt of a retry. A turn that had called tools is continued. Otherwise the agent may have no
 * record of the task, so the prompt repeats the task.
 */
async function retryWords(tx: Tx, session: SessionRecord): Promise<string> {
  const turn = await tx.turns.last(session.id);
  if (turn === null || turn.toolUseCount > 0) return RETRY_GO_ON;
  const messages = await tx.messages.ofTurn(turn.id);
  const words = messages.map((each) => taskIn(each)).filter((each) => each !== "");
  return words.length === 0 ? RETRY_GO_ON : [RETRY_ANEW, ...words].join("\n\n");
}

/**
 * Returns the task in a message. If the message is a retry that repeats a task, removes the daemon's line
 * above the task. For any other retry, returns an empty string.
 */
function taskIn(message: MessageRecord): string {
  const body = message.body ?? "";
  if (retryIn(message) === 0) return body;
  return body.startsWith(`${RETRY_ANEW}\n\n`) ? body.slice(RETRY_ANEW.length + 2) : "";
}

/** Resumes sessions that can reserve budget again, after some was freed or a limit was raised. */
export async function retryBudgets(tx: Tx, rootId: string, now: number): Promise<void> {
  for (const session of await tx.sessions.parkedIn(rootId)) {
    if (session.parked?.on !== "budget") continue;
    const nothing = { usd: 0, tokens: 0 };
    if (reserve(await accountsOf(tx, session), { largest: nothing, floor: nothing }).ok)
      await unpark(tx, session, now);
  }
}

const RETRY_GO_ON =
  "[Kinfold] Your model's provider was in trouble, and your turn was cut. Continue it from where it stopped. Interrupted calls may have taken effect: check them before you repeat them.";
const RETRY_ANEW =
  "[Kinfold] Your model's provider was in trouble before you could begin. Here is your task again; you may have seen it already.";

const GO_ON =
  "[Kinfold] The usage limit is over. Continue your turn from where it stopped. Interrupted calls may have taken effect: check them before you repeat them.";

function changed(tx: Tx, session: SessionRecord, now: number): void {
  const data = { parked: session.parked };
  tx.append({ sessionId: session.id, type: "session.updated", data, at: now });
}

export async function parkedError(
  reads: Pick<Reads, "triggers">,
  session: SessionRecord,
): Promise<TriggerRecord | null> {
  if (session.parked === null) return null;
  const triggers = await reads.triggers.ofSession(session.id);
  return triggers.findLast((each) => isErrorOf(session, each) && each.status === "open") ?? null;
}

/**
 * Whether the session's error was already reported. An exhausted budget is reported once per round, a
 * vendor's limit every time.
 */
async function wasReported(tx: Tx, session: SessionRecord, on: Parked["on"]): Promise<boolean> {
  if (on === "limit") return false;
  const triggers = await tx.triggers.ofSession(session.id);
  return triggers.some((each) => isErrorOf(session, each) && each.payload["kind"] === "budget");
}

/** Whether the trigger is an error in the session's current round. */
function isErrorOf(session: SessionRecord, { type, round }: TriggerRecord): boolean {
  return type === "session_error" && round === session.round;
}

async function withdrawErrors(
  tx: Tx,
  session: SessionRecord,
  { now, isWanted }: { now: number; isWanted: (trigger: TriggerRecord) => boolean },
): Promise<void> {
  for (const trigger of await tx.triggers.ofSession(session.id)) {
    if (!isErrorOf(session, trigger) || trigger.status !== "open" || !isWanted(trigger)) continue;
    await tx.triggers.close(trigger.id, { status: "withdrawn", closedAt: now });
    const data = { triggerId: trigger.id, type: trigger.type, status: "withdrawn", by: null };
    tx.append({ sessionId: session.id, type: "trigger.closed", data, at: now });
  }
}
