import { mergeReceipts } from "../domain/receipt.ts";
import type { CallbackData } from "../domain/callback.ts";
import type { Reads, SessionRecord, TriggerRecord, TurnRecord, Tx } from "../store/port/store.ts";
import { type Admission, admit, newMessage } from "./admit.ts";
import type { RoundEnd } from "./round.ts";
import { newId } from "../system/id.ts";
import { type Report, reportOf } from "../domain/session.ts";

/**
 * Reports the end of the child's round to the parent's inbox, in the transaction that ends the round. Each
 * round gives one callback; with `callback.when: "turn"`, each turn gives one.
 */
export async function callBack(
  tx: Tx,
  child: SessionRecord,
  { end, turn = null }: { end: RoundEnd; turn?: TurnRecord | null },
): Promise<void> {
  if (child.parentId === null || child.detachedAt !== null || !child.callback.enabled) return;
  const parent = await tx.sessions.byId(child.parentId);
  if (parent === null) return;
  const key = callbackKey(child, turn);
  if ((await tx.messages.byCallbackKey(parent.id, key)) !== null) return;
  const data = await callbackData(tx, child, { end, turn });
  const exitReason = end.outcome === "failed" ? "error" : end.outcome;
  const trigger = newTrigger({
    sessionId: child.id,
    toId: parent.id,
    type: "session_complete",
    payload: { exitReason, result: data.lastMessage, round: child.round },
    round: child.round,
    now: end.now,
  });
  const metadata = {
    isCallback: true,
    source: "kinfold",
    childSessionId: child.id,
    childTurnId: data.turnId,
    triggerId: trigger.id,
    outcome: end.outcome,
  };
  await tx.triggers.add(trigger);
  const admission = {
    kind: "callback",
    senderKind: "session",
    senderId: child.id,
    delivery: "followUp",
    body: null,
    data: { ...data },
    callbackKey: key,
    metadata,
  } as const;
  const voidReason = end.silent ?? (parent.endedAt === null ? null : "its parent has ended");
  if (voidReason === null) await admit(tx, parent, { now: end.now, ...admission });
  else await undeliverable(tx, parent, { now: end.now, ...admission, voidReason });
}

export function callbackKey(child: SessionRecord, turn: TurnRecord | null): string {
  return turn === null ? `${child.id}:${child.round}` : `${child.id}:${child.round}:${turn.index}`;
}

/** Returns the key of the callback that reports a session's end. */
export async function endKey(tx: Pick<Tx, "turns">, child: SessionRecord): Promise<string> {
  const turn = child.callback.when === "turn" ? await tx.turns.running(child.id) : null;
  return callbackKey(child, turn);
}

export async function callbackData(
  tx: Pick<Tx, "turns" | "messages">,
  child: SessionRecord,
  { end, turn = null }: { end: RoundEnd; turn?: TurnRecord | null },
): Promise<CallbackData> {
  const turns = turn === null ? await tx.turns.ofRound(child.id, child.round) : [turn];
  const last = turns.at(-1) ?? null;
  const { report, lastWords } = await reportOfTurns(tx, turns);
  const receipts = turns.flatMap((each) => (each.receipt === null ? [] : [each.receipt]));
  const started = turn?.startedAt ?? child.roundOpenedAt ?? child.createdAt;
  return {
    childId: child.id,
    childShortId: child.shortId,
    childName: child.name ?? child.title ?? child.shortId,
    agent: child.agent,
    model: child.model,
    turnId: last?.id ?? null,
    round: child.round,
    outcome: end.outcome,
    reason: end.reason,
    by: end.by,
    durationMs: Math.max(0, end.now - started),
    completedAt: end.now,
    receipt: mergeReceipts(receipts),
    lastMessage: report,
    lastWords,
    prompt: promptOf(child),
    messageCount: child.messageCount,
    toolUseCount: child.toolUseCount,
    stoppedBelow: end.stoppedBelow ?? 0,
    left: [...(end.left ?? [])],
    lastTool: end.lastTool ?? null,
    includeLastMessage: child.callback.includeLastMessage,
    includeOriginalPrompt: child.callback.includeOriginalPrompt,
    template: child.callback.template,
    parentId: child.parentId ?? "",
    unlanded: end.unlanded ?? null,
  };
}

/** `turns` must belong to one round. */
export async function reportOfTurns(
  reads: Pick<Reads, "messages">,
  turns: readonly TurnRecord[],
): Promise<Report> {
  const [first] = turns;
  // The last message of a single turn is the report, whether or not the turn was about callbacks.
  const isShort = first === undefined || turns.length === 1;
  const about = new Set(isShort ? [] : await reads.messages.callbackTurns(first.sessionId, first.round));
  return reportOf(
    turns.map(({ id, lastAssistantMessage }) => ({
      lastMessage: lastAssistantMessage,
      isAboutCallbacks: about.has(id),
    })),
  );
}

function promptOf(child: SessionRecord): string {
  const { prompt } = child.spawnConfig;
  return typeof prompt === "string" ? prompt.slice(0, 400) : "";
}

/** Adds a message to the parent's inbox as void, with the reason, so that a person can see it. */
async function undeliverable(
  tx: Tx,
  parent: SessionRecord,
  { now, ...admission }: Admission & { voidReason: string } & { now: number },
): Promise<void> {
  const message = await tx.messages.add({ ...newMessage(parent.id, admission, now), status: "void" });
  const data = { messageId: message.id, reason: admission.voidReason };
  tx.append({ sessionId: parent.id, type: "message.void", data, at: now });
}

/**
 * Makes the row of an open trigger. `row` has deadlines only if the trigger needs an answer.
 * `session_complete`, `session_error` and fired triggers need none.
 */
export function newTrigger({
  now,
  ...row
}: Pick<TriggerRecord, "sessionId" | "toId" | "type" | "payload" | "round"> &
  Partial<TriggerRecord> & { now: number }): Omit<TriggerRecord, "rootId"> {
  return {
    id: newId(),
    toPerson: false,
    status: "open",
    personAt: null,
    defaultAt: null,
    default: null,
    originalId: null,
    context: null,
    answer: null,
    seenAt: null,
    fence: null,
    createdAt: now,
    closedAt: null,
    ...row,
  };
}
