import type { Answer, Asked } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";
import { shortId } from "../../contract/short-id.ts";
import { redactBriefly } from "../../secrets/redact-long.ts";
import { hashOf } from "../../system/id.ts";
import { raise } from "../../kernel/trigger.ts";
import type { SessionRecord, TriggerRecord, Tx } from "../../store/port/store.ts";
import { blocking } from "../wait/blocking.ts";
import { replyCarrier, takeIntoReply } from "../wait/reply-carrier.ts";
import type { Handler, OperationDeps } from "../deps.ts";
import type { CallerContext, Call } from "../port.ts";
import { callerSession, refuseGone } from "../access/authority.ts";

type Asker = CallerContext & { kind: "session" };

/** Asks the parent, or a person if the parent cannot be asked or is late. Waits at most `capMs`. */
export const ask: Handler<"ask"> = async (deps, caller, { input, call }) => {
  const questions = input.questions.map((each, index) => ({ ...each, id: each.id ?? `q${index + 1}` }));
  const payload = { questions, ...(input.default === undefined ? {} : { default: input.default }) };
  const timeMs = Math.min(input.timeoutMs ?? input.capMs, input.capMs);
  return raiseAndWait(deps, caller, {
    type: "ask_user_question",
    payload,
    default: input.default ?? null,
    timeMs,
    call,
  });
};

/** Asks for a review of a plan. Each further plan of the same round gets the next revision number. */
export const planReview: Handler<"planReview"> = async (deps, caller, { input, call }) => {
  const self = callerSession(caller);
  const earlier = self === null ? [] : await deps.store.read.triggers.ofSession(self.id);
  const revision =
    earlier.filter((each) => each.type === "plan_review" && each.round === self?.round).length + 1;
  const { title, steps, description } = input;
  const payload = { title, steps, ...(description === undefined ? {} : { description }), revision };
  return raiseAndWait(deps, caller, {
    type: "plan_review",
    payload,
    default: null,
    timeMs: input.capMs,
    call,
  });
};

interface Asking {
  readonly type: string;
  readonly payload: Record<string, unknown>;
  readonly default: string | null;
  readonly timeMs: number;
  readonly call: Call;
}

async function raiseAndWait(deps: OperationDeps, caller: CallerContext, asking: Asking): Promise<Asked> {
  const self = callerSession(caller);
  if (self === null || caller.kind !== "session") {
    throw new Refusal("forbidden", "Only a session asks upward; a person answers.");
  }
  const trigger = await deps.store.write(self.rootId, async (tx) => {
    await refuseGone(tx, caller);
    return raiseOnce(deps, tx, { self, ...asking });
  });
  const look = async (): Promise<TriggerRecord | null> => {
    const now = await deps.store.read.triggers.byId(trigger.id);
    return now === null || now.status === "open" ? null : now;
  };
  const end = await blocking(deps, caller, { look, timeMs: asking.timeMs, signal: asking.call.signal });
  if (end === null || asking.call.signal.aborted) return pending(deps, trigger);
  return takeAnswer(deps, caller, { self, trigger: end });
}

/** Raises a question. If the same question is open, or its answer still unread, returns that trigger. */
async function raiseOnce(
  deps: OperationDeps,
  tx: Tx,
  { self, ...asking }: Asking & { self: SessionRecord },
): Promise<TriggerRecord> {
  const session = (await tx.sessions.byId(self.id)) ?? self;
  const { revision: _, ...asked } = asking.payload;
  const hash = hashOf(JSON.stringify(redactBriefly(asked)));
  for (const earlier of await unheard(tx, self.id)) {
    const { revision: _revision, ...payload } = earlier.payload;
    if (earlier.type === asking.type && hashOf(JSON.stringify(payload)) === hash) return earlier;
  }
  return raise(tx, session, {
    type: asking.type,
    payload: asking.payload,
    default: asking.default,
    fence: null,
    personOnly: false,
    parentMs: deps.config.triggers.parentMs,
    defaultMs: deps.config.triggers.defaultMs,
    openMax: deps.config.limits.requestsMax,
    now: deps.now(),
  });
}

/** Returns triggers that are open, or whose answer is still in the asker's inbox. */
async function unheard(tx: Tx, sessionId: string): Promise<TriggerRecord[]> {
  const found = await tx.triggers.open({ sessionId });
  for (const { kind, metadata } of await tx.messages.ofSession(sessionId, ["queued"])) {
    if (kind !== "answer") continue;
    const answered = await tx.triggers.byId(String(metadata["triggerId"]));
    if (answered !== null) found.push(answered);
  }
  return found;
}

async function takeAnswer(
  deps: OperationDeps,
  caller: Asker,
  { self, trigger }: { self: SessionRecord; trigger: TriggerRecord },
): Promise<Asked> {
  const message = await deps.store.write(self.rootId, async (tx) => {
    const queued = await tx.messages.ofSession(self.id, ["queued"]);
    const answer = queued.find((each) => each.kind === "answer" && each.metadata["triggerId"] === trigger.id);
    const now = deps.now();
    const carrier = await replyCarrier(tx, caller);
    if (answer === undefined || !(await takeIntoReply(tx, answer, { carrier, now }))) return null;
    await tx.triggers.seen(trigger.id, now);
    return answer;
  });
  // The trigger's row is redacted, because others can see it. The message to the asker has the original
  // answer.
  const answer = message === null ? trigger.answer : (message.data as Answer | null);
  return {
    ...(await pending(deps, trigger)),
    status: trigger.status === "open" ? "pending" : trigger.status,
    by: answer?.by ?? null,
    action: answer?.action ?? null,
    response: answer?.response ?? null,
    answers: answer?.answers ?? null,
    deliveryId: message?.deliveryId ?? null,
    taken: message === null ? [] : [message.id],
  };
}

async function pending(deps: OperationDeps, trigger: TriggerRecord): Promise<Asked> {
  const parent = trigger.toId === null ? null : await deps.store.read.sessions.byId(trigger.toId);
  const asked = [parent === null ? null : "your parent", trigger.toPerson ? "the user" : null];
  return {
    triggerId: trigger.id,
    shortId: shortId(trigger.id),
    status: "pending",
    by: null,
    action: null,
    response: null,
    answers: null,
    asked: asked.filter((each) => each !== null).join(" and "),
    deliveryId: null,
    taken: [],
  };
}
