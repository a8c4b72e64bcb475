import type { Answer, Trigger } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { shortId } from "../../contract/short-id.ts";
import { redactSlowly } from "../../secrets/redact-long.ts";
import { oneLine } from "../../text/fence.ts";
import { actionsOf, answerProblem, needsNoAnswer } from "../../domain/trigger.ts";
import { admit } from "../../kernel/admit.ts";
import { cancelSubtree } from "../../kernel/cancel.ts";
import { closeTrigger, THE_USER } from "../../kernel/trigger.ts";
import type { SessionRecord, TriggerRecord, Tx } from "../../store/port/store.ts";
import { takeSteps } from "../../system/steps.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import type { CallerContext } from "../port.ts";
import { isRepeated, tooLate } from "./late-answer.ts";
import { refuseReopening } from "../session/reopen-limit.ts";
import { isBelow, resolve } from "../access/resolve.ts";
import { callerSession, refuseGone, requireKeyReach } from "../access/authority.ts";
import { describe } from "../read/view.ts";
import { sees } from "../../domain/permission.ts";
import { newTrigger } from "../../kernel/callback.ts";

/** Answers a trigger. If another answer came first, the refusal says who gave it and what it was. */
export const respond: Handler<"respond"> = async (deps, caller, { input }) => {
  const trigger = await findTrigger(deps, caller, input.id);
  const asker = await requireAsker(deps, caller, trigger);
  requireKeyReach(caller, asker);
  const given = {
    action: input.action ?? null,
    response: input.response ?? null,
    answers: input.answers ?? null,
  };
  const type = await typeOf(deps, trigger);
  refuseUnheard(type, trigger, { asker, isOwn: asker.id === caller.id });
  const problem = answerProblem(type, given);
  if (problem !== null) throw new Refusal("bad_answer", problem, { type, actions: actionsOf(type) });
  requireAuthority(caller, type, given.action);
  const now = deps.now();
  const answer: Answer = { by: await nameOf(deps, caller), callerId: caller.id, ...given, at: now };
  const what = await deps.store.write(trigger.rootId, async (tx) => {
    await refuseGone(tx, caller);
    const fresh = (await tx.triggers.byId(trigger.id)) ?? trigger;
    if (isRepeated(fresh, answer, input.key)) return whatBecame(tx, type, { asker, answer });
    if (fresh.status !== "open") throw await tooLate(tx, fresh);
    const current = await tx.sessions.byId(asker.id);
    if (current?.endedAt != null && type !== "session_complete") throw endedBefore(asker);
    if (type === "session_complete") return finishChild(tx, fresh, { deps, asker, answer, caller, now });
    await closeTrigger(tx, fresh, { status: "answered", answer, now });
    if (type === "plan_review" && given.action === "cancel") await stopTurnOf(tx, asker, { answer, now });
    return whatBecame(tx, type, { asker, answer });
  });
  const after = (await deps.store.read.triggers.byId(trigger.id)) ?? trigger;
  return { trigger: await viewOneTrigger(after), what };
};

/** Says in one sentence what happens because of an answer. Also used when the same answer is sent again. */
async function whatBecame(
  tx: Tx,
  type: string,
  of: { asker: SessionRecord; answer: Answer },
): Promise<string> {
  const child = (await tx.sessions.byId(of.asker.id)) ?? of.asker;
  const who = describe(child);
  if (type !== "session_complete") {
    const isRunning = (await tx.turns.running(child.id)) !== null;
    return `Your answer goes to ${who}${isRunning ? "" : " as its next message"}.`;
  }
  if (of.answer.action !== "ack") return `${who} goes on with it; its result will come to you as a message.`;
  if (child.endReason === "acked") return `${who} is closed.`;
  return `${who} has been given more work since; it goes on and was not closed.`;
}

/** Passes a question on to the person in a second trigger. An answer to either trigger answers both. */
export const escalate: Handler<"escalate"> = async (deps, caller, { input }) => {
  const trigger = await findTrigger(deps, caller, input.id);
  const asker = await requireAsker(deps, caller, trigger);
  const now = deps.now();
  const row = await deps.store.write(trigger.rootId, async (tx) => {
    await refuseGone(tx, caller);
    const fresh = (await tx.triggers.byId(trigger.id)) ?? trigger;
    if (fresh.status !== "open") throw await tooLate(tx, fresh);
    if (needsNoAnswer(fresh.type) || fresh.toId === fresh.sessionId) {
      const what = NEEDS_NONE[fresh.type] ?? "What was fired from outside";
      throw new Refusal("bad_answer", `${what} needs no decision. Tell the user in your own words instead.`);
    }
    const open = await tx.triggers.open({ sessionId: asker.id });
    const earlier = open.find((each) => each.originalId === fresh.id);
    if (earlier !== undefined) return earlier;
    const made = newTrigger({
      sessionId: asker.id,
      toId: null,
      type: "escalate",
      payload: { ...fresh.payload, originalType: fresh.type },
      round: fresh.round,
      now,
    });
    const more = { toPerson: true, originalId: fresh.id, context: input.context ?? null };
    const added = { ...made, ...more, default: fresh.default, defaultAt: fresh.defaultAt };
    await tx.triggers.add(added);
    await tx.triggers.patch(fresh.id, { personAt: null });
    const data = { triggerId: made.id, type: "escalate", originalId: fresh.id, toId: null, toPerson: true };
    tx.append({ sessionId: asker.id, type: "trigger.opened", text: null, data, at: now });
    return { ...added, rootId: tx.rootId };
  });
  return {
    trigger: await viewOneTrigger(row),
    what: `The user has been asked. The answer goes to ${describe(asker)}; you will be told.`,
  };
};

export const listTriggers: Handler<"listTriggers"> = async (deps, caller, { input }) => {
  const open = await deps.store.read.triggers.open(input.for === "person" ? { toPerson: true } : {});
  const escalated = new Set(open.map((each) => each.originalId));
  const latest = open.filter((each) => !escalated.has(each.id));
  const askers = await Promise.all(latest.map((each) => deps.store.read.sessions.byId(each.sessionId)));
  const dueAt = (each: TriggerRecord): number => each.defaultAt ?? Number.MAX_SAFE_INTEGER;
  const shown = latest
    .map((trigger, index) => ({ trigger, asker: askers[index] ?? null }))
    .filter(({ asker }) => asker !== null && sees(caller.visible, asker.scope))
    .toSorted((a, b) => dueAt(a.trigger) - dueAt(b.trigger));
  const triggers = await viewTriggers(shown.map(({ trigger }) => trigger));
  return {
    triggers: triggers.map((trigger, i) => ({ ...trigger, sessionName: nameOfRow(shown[i]?.asker ?? null) })),
  };
};

export async function viewTriggers(rows: readonly TriggerRecord[]): Promise<Trigger[]> {
  const answers = await takeSteps(redactSlowly(rows.map(({ answer }) => ({ answer }))));
  return rows.map((row, i) => viewTrigger(row, answers[i]?.answer ?? null));
}

async function viewOneTrigger(row: TriggerRecord): Promise<Trigger> {
  const [trigger] = await viewTriggers([row]);
  return trigger!;
}

function viewTrigger(row: TriggerRecord, answer: Trigger["answer"]): Trigger {
  const { rootId: _root, personAt, defaultAt, seenAt, fence: _fence, ...rest } = row;
  const originalType = row.payload["originalType"];
  const type = row.type === "escalate" && typeof originalType === "string" ? originalType : row.type;
  return {
    ...rest,
    answer,
    shortId: shortId(row.id),
    actions: [...actionsOf(type)],
    deadline: { personAt: row.toPerson ? null : personAt, defaultAt },
    seenByAgentAt: seenAt,
  };
}

/** Finds a trigger by its id or its message's delivery id. A person may give the asking session instead. */
async function findTrigger(deps: OperationDeps, caller: CallerContext, ref: string): Promise<TriggerRecord> {
  const { read } = deps.store;
  const self = callerSession(caller);
  if (self !== null) {
    const message = await read.messages.byDeliveryId(self.id, ref);
    const id = message?.metadata["triggerId"];
    const named = typeof id === "string" ? await read.triggers.byId(id) : null;
    if (named !== null) return named;
  }
  const found = await read.triggers.byRef(ref);
  const usable = self === null ? found : found.filter((each) => each.rootId === self.rootId);
  if (usable.length === 1 || usable[0]?.id === ref) return usable[0]!;
  const session = self === null ? await resolve(deps, caller, ref).catch(refusedAsNull) : null;
  const open = session === null ? [] : await read.triggers.open({ sessionId: session.id });
  const asked = open.find((each) => each.type === "escalate") ?? open[0];
  if (asked !== undefined) return asked;
  throw new Refusal(
    "unknown_trigger",
    `No trigger "${ref.slice(0, 60)}" is known to you. Use the ID of its <!-- trigger:ID --> line; list_sessions shows what is open.`,
    { ref },
  );
}

async function requireAsker(
  deps: OperationDeps,
  caller: CallerContext,
  trigger: TriggerRecord,
): Promise<SessionRecord> {
  const asker = await deps.store.read.sessions.byId(trigger.sessionId);
  if (asker === null || (caller.kind !== "session" && !sees(caller.visible, asker.scope))) {
    throw new Refusal("unknown_trigger", "No session that you can see asks this.");
  }
  if (caller.kind !== "session" || (await isBelow(deps.store.read, asker, caller.id))) return asker;
  if (trigger.toId === caller.id && asker.id === caller.id) return asker;
  throw new Refusal(
    "not_a_child",
    `${describe(asker)} is not below you: its triggers are not yours to answer.`,
  );
}

/** Refuses an answer that nobody would receive. */
function refuseUnheard(
  type: string,
  trigger: TriggerRecord,
  of: { asker: SessionRecord; isOwn: boolean },
): void {
  const { asker, isOwn } = of;
  const write = `tell_child("${asker.shortId}", …)`;
  if (type === "session_error") {
    throw new Refusal(
      "bad_answer",
      `An error needs no answer: ${describe(asker)} continues by itself, or you get its callback. To write to it use ${write}; if its work is not needed any more, cancel_session.`,
      { type },
    );
  }
  if (trigger.toId !== trigger.sessionId) return;
  throw new Refusal(
    "bad_answer",
    `"${oneLine(type, 60)}" was fired at ${isOwn ? "you" : describe(asker)} from outside, and nobody there hears an answer. ${isOwn ? "Act on it as your task requires." : `To write to the session itself use ${write}.`}`,
    { type },
  );
}

const NEEDS_NONE: Readonly<Record<string, string>> = {
  session_complete: "An end",
  session_error: "An error",
};

function endedBefore(asker: SessionRecord): Refusal {
  return new Refusal("session_ended", `${describe(asker)} has ended and can no longer receive an answer.`);
}

/** A parent may allow only what it may do itself without asking; anything else needs the person. */
function requireAuthority(caller: CallerContext, type: string, action: string | null): void {
  if (type !== "permission" || action !== "allow" || caller.kind !== "session") return;
  const self = callerSession(caller);
  if (self?.effective.permission === "full") return;
  throw new Refusal(
    "may_not_allow",
    `You may do this only when asked yourself (your permission is "${self?.effective.permission}"), so you may not allow it. Deny it, or pass it on with escalate_trigger.`,
  );
}

async function typeOf(deps: OperationDeps, trigger: TriggerRecord): Promise<string> {
  if (trigger.originalId === null) return trigger.type;
  const original = await deps.store.read.triggers.byId(trigger.originalId);
  return original?.type ?? trigger.type;
}

async function finishChild(
  tx: Tx,
  trigger: TriggerRecord,
  end: { deps: OperationDeps; asker: SessionRecord; answer: Answer; caller: CallerContext; now: number },
): Promise<string> {
  const child = (await tx.sessions.byId(end.asker.id)) ?? end.asker;
  const { now, answer, caller } = end;
  await tx.triggers.close(trigger.id, { status: "answered", answer, closedAt: now });
  if (answer.action === "ack") {
    if (child.round === trigger.round && !child.roundOpen && child.endedAt === null) {
      await cancelSubtree(tx, child, { by: answer.by, reason: "acknowledged", now });
      await tx.sessions.patch(child.id, { endReason: "acked" });
    }
    return whatBecame(tx, "session_complete", end);
  }
  if (child.endedAt !== null)
    throw new Refusal("session_ended", `${describe(child)} has ended and takes no more work.`);
  await refuseReopening(end.deps, tx, { session: child, caller });
  const sender = { senderKind: caller.kind, senderId: caller.id };
  await admit(tx, child, { now, kind: "prompt", delivery: "followUp", body: answer.response, ...sender });
  return whatBecame(tx, "session_complete", end);
}

async function stopTurnOf(
  tx: Tx,
  asker: SessionRecord,
  { answer, now }: { answer: Answer; now: number },
): Promise<void> {
  const turn = await tx.turns.running(asker.id);
  if (turn === null) return;
  await tx.turns.patchRunning(turn.id, turn.fence, { stopBy: answer.by, stopNote: "the plan was cancelled" });
  const data = { turnId: turn.id, by: answer.by };
  tx.append({
    sessionId: asker.id,
    type: "notice",
    text: `the plan of session ${asker.id} was cancelled`,
    data,
    at: now,
  });
  tx.wake(asker.id);
}

async function nameOf(deps: OperationDeps, caller: CallerContext): Promise<string> {
  if (caller.kind === "person") return THE_USER;
  if (caller.kind === "outside") return `${caller.name} (an API key)`;
  const self = await deps.store.read.sessions.byId(caller.id);
  return self === null ? "a session" : `its parent ${describe(self)}`;
}

function nameOfRow(session: SessionRecord | null): string | null {
  return session === null ? null : (session.name ?? session.shortId);
}

/** Returns null for a refusal; other errors, such as a failure of the store, are thrown. */
function refusedAsNull(error: unknown): null {
  if (error instanceof Refusal) return null;
  throw error;
}
