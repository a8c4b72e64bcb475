import { isWork } from "../../src/domain/landing.ts";
import { type Checking, messageDetail } from "./check.ts";
import type { Got } from "./journals.ts";
import type { MessageRow } from "./tables.ts";

/**
 * Checks each message against its agent's journal: none may be lost, out of order, or repeated without the
 * mark of a repeat.
 */
export function checkMessages(checking: Checking): void {
  const { tables, counts } = checking;
  for (const message of tables.messages) {
    counts.add(`messages: ${message.kind} ${message.status}`);
    const got = checking.journals.got.get(message.deliveryId) ?? [];
    checkState(checking, message, got);
    checkRepeats(checking, message, got);
  }
  checkForeign(checking);
  checkOrder(checking);
  checkAcknowledged(checking);
  checkInterrupted(checking);
}

function checkState(checking: Checking, message: MessageRow, got: readonly Got[]): void {
  const { findings, sessions } = checking;
  const session = sessions.get(message.sessionId)!;
  const detail = messageDetail(checking, message);
  switch (message.status) {
    case "landed":
      if (got.length === 0) findings.add("lost", "a landed message never reached its agent", detail);
      return;
    case "void":
      if (session.endedAt === null) checkVoid(checking, message, got);
      return;
    case "taken":
      findings.add("stuck", "a message stays taken", detail);
      return;
    default:
      if (session.endedAt === null)
        findings.add("stuck", "a message was never taken from a live session's inbox", detail);
  }
}

/**
 * Checks a void message of a live session. A message that is not work (see `isWork`) may be void only if it
 * is a trigger that was answered or withdrawn. Work may be void only if its turn was cancelled, or was
 * interrupted after the agent had received the message.
 */
function checkVoid(checking: Checking, message: MessageRow, got: readonly Got[]): void {
  const { findings, turns, counts } = checking;
  const detail = messageDetail(checking, message);
  if (message.kind === "trigger" && message.voidReason === "it was answered or withdrawn") return;
  if (!isWork(message.kind)) {
    findings.add("lost", "information for a live session became void", detail);
    return;
  }
  counts.add(`work made void: ${message.voidReason}`);
  const turn = message.turnId === null ? undefined : turns.get(message.turnId);
  if (turn?.status === "cancelled") return;
  if (turn?.status === "interrupted" && got.length > 0) return;
  findings.add("lost", "work that never reached its agent became void", detail);
}

function checkRepeats(checking: Checking, message: MessageRow, got: readonly Got[]): void {
  const { findings, counts } = checking;
  const again = got.slice(1);
  if (again.length === 0) return;
  // The wait tool shows open triggers without the mark of a repeat, even if the agent already has them.
  const isShown = (each: Got): boolean => message.kind === "trigger" && each.by === "tool";
  const unmarked = again.filter((each) => !each.isMarked && !isShown(each));
  if (unmarked.length > 0) {
    findings.add(
      "told-twice",
      "an agent got a message again without the mark",
      messageDetail(checking, message),
    );
  } else counts.add("repeats, marked");
}

/** Finds messages that an agent received although they were addressed to another session. */
function checkForeign({ tables, journals, sessions, findings }: Checking): void {
  const known = new Map(tables.messages.map((message) => [message.deliveryId, message]));
  for (const [id, all] of journals.got) {
    for (const got of all) {
      const message = known.get(id);
      const session = message === undefined ? undefined : sessions.get(message.sessionId);
      const isOwn = session !== undefined && (session.agentSessionId === got.file || got.by === "tool");
      const hasNoOther = session?.agentSessionId === null;
      if (got.by !== "tool" && !isOwn && !hasNoOther) {
        const detail = { deliveryId: id, journal: got.file, at: got.at, session: session?.name };
        findings.add("astray", "an agent got a message for another session", detail);
      }
    }
  }
}

/**
 * Checks I3: messages from one sender with the same delivery (`steer` or `followUp`) arrive in order. Skips
 * messages that were returned to the inbox.
 */
function checkOrder(checking: Checking): void {
  const { journals, tables, events, findings } = checking;
  const returned = new Set(
    events.filter((event) => event.type === "message.returned").map((event) => event.data["messageId"]),
  );
  const byDelivery = new Map(tables.messages.map((message) => [message.deliveryId, message]));
  const firsts = [...journals.got].map(([id, all]) => ({ message: byDelivery.get(id), got: all[0]! }));
  firsts.sort((a, b) => (a.got.file === b.got.file ? a.got.at - b.got.at : a.got.file < b.got.file ? -1 : 1));
  const last = new Map<string, MessageRow>();
  for (const { message, got } of firsts) {
    if (message === undefined || got.by === "tool" || returned.has(message.id)) continue;
    if (message.kind === "answer" || message.kind === "notice") continue;
    const key = [got.file, got.by, message.senderKind, message.senderId, message.delivery].join(" ");
    const before = last.get(key);
    if (before !== undefined && before.position > message.position) {
      findings.add("order", "two messages of one sender came in the wrong order", {
        first: messageDetail(checking, before),
        second: messageDetail(checking, message),
      });
    }
    last.set(key, message);
  }
}

/** Checks I10: the store contains exactly once each message that was acknowledged to a person. */
function checkAcknowledged({ acknowledged, tables, findings }: Checking): void {
  const byKey = Map.groupBy(tables.messages, (message) => message.key ?? "");
  for (const { what, key, sessionId } of acknowledged) {
    const count = byKey.get(key)?.length ?? 0;
    if (count !== 1)
      findings.add("acknowledged", `an acknowledged ${what} is stored ${count} times`, { key, sessionId });
  }
}

/**
 * Checks that a turn is given up only after two attempts in which its agent worked. Attempts that ended
 * before any work do not count.
 */
function checkInterrupted(checking: Checking): void {
  const { tables, sessions, findings, counts } = checking;
  for (const turn of tables.turns) {
    if (turn.status !== "interrupted") continue;
    const session = sessions.get(turn.sessionId);
    const worked = Math.max(workedAttempts(checking, turn.id), cutCalls(checking, turn.id));
    counts.add(`interrupted after ${worked} attempts with work`);
    if (worked >= 2) continue;
    const detail = { session: session?.name, journal: session?.agentSessionId, worked, ...turn };
    findings.add("interrupted-early", "a turn was given up although its agent had hardly begun", detail);
  }
}

/**
 * Counts the tool calls that the daemon saw begin but not end. An attempt leaves at most one such call. The
 * call is not in the journal, because agents record a call only when it ends.
 */
function cutCalls({ tables }: Checking, turnId: string): number {
  const own = tables.entries.filter((entry) => entry.turnId === turnId);
  const ended = new Set(own.flatMap(({ kind, body }) => (kind === "toolResult" ? [body.callId] : [])));
  return own.filter(({ kind, body }) => kind === "toolCall" && !ended.has(body.callId)).length;
}

/** Counts the attempts at this turn that did any work, according to the agent's journal. */
function workedAttempts({ tables, journals, events }: Checking, turnId: string): number {
  const taken = new Set(
    events
      .filter((event) => event.type === "message.taken" && event.data["turnId"] === turnId)
      .map((event) => event.data["messageId"]),
  );
  const messages = tables.messages.filter((message) => taken.has(message.id));
  const starts = messages
    .flatMap((message) => journals.got.get(message.deliveryId) ?? [])
    .filter((got) => got.by === "prompt");
  const [first] = starts.toSorted((a, b) => a.at - b.at);
  if (first === undefined) return 0;
  let worked = 0;
  let hasWorked = false;
  for (const record of (journals.files.get(first.file) ?? []).slice(first.at + 1)) {
    if (record.kind === "user" && record.steered !== true) {
      if (!record.text.startsWith("[Kinfold] Your turn was cut")) break;
      worked += hasWorked ? 1 : 0;
      hasWorked = false;
    } else if (record.kind !== "user") hasWorked = true;
  }
  return worked + (hasWorked ? 1 : 0);
}
