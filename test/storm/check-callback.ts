import { type Checking, messageDetail } from "./check.ts";
import type { MessageRow, SessionRow } from "./tables.ts";

/**
 * Checks I1 and I2: each closed round of a child has one callback, created in the transaction that closed the
 * round and delivered to the parent.
 */
export function checkCallbacks(checking: Checking): void {
  const { tables, sessions, findings } = checking;
  const byKey = Map.groupBy(
    tables.messages.filter((message) => message.callbackKey !== null),
    (message) => message.callbackKey!,
  );
  for (const child of tables.sessions) {
    const parent = child.parentId === null ? undefined : sessions.get(child.parentId);
    if (parent === undefined || !child.callback.enabled || child.detachedAt !== null) continue;
    for (const { round, xid } of closedRounds(checking, child)) {
      const own = byKey.get(`${child.id}:${round}`) ?? [];
      checkOne(checking, { child, parent, round, xid }, own);
    }
  }
  for (const [key, messages] of byKey) {
    const [childId = "", round = ""] = key.split(":");
    const child = sessions.get(childId);
    const isClosed =
      child !== undefined && closedRounds(checking, child).some((each) => String(each.round) === round);
    if (!isClosed) {
      findings.add(
        "callback-early",
        "a callback is there before its round closed",
        messageDetail(checking, messages[0]!),
      );
    }
  }
}

function closedRounds({ events }: Checking, child: SessionRow): { round: number; xid: number }[] {
  return events
    .filter((event) => event.sessionId === child.id && event.type === "round.closed")
    .map((event) => ({ round: Number(event.data["round"]), xid: event.xid }));
}

function checkOne(
  checking: Checking,
  at: { child: SessionRow; parent: SessionRow; round: number; xid: number },
  own: readonly MessageRow[],
): void {
  const { findings, counts, events } = checking;
  const { child, parent, round } = at;
  const [message] = own;
  counts.add("callbacks owed");
  if (message === undefined) {
    const detail = {
      child: child.name,
      id: child.id,
      round,
      parent: parent.name,
      parentEnded: parent.endedAt,
    };
    findings.add("callback-lost", "a closed round has no callback", detail);
    return;
  }
  const detail = messageDetail(checking, message);
  if (own.length > 1) findings.add("callback-twice", "a closed round has two callbacks", detail);
  if (message.sessionId !== parent.id)
    findings.add("callback-astray", "a callback went to another session", detail);
  const isSameCommit = events.some((event) => event.xid === at.xid && event.data["messageId"] === message.id);
  if (!isSameCommit)
    findings.add(
      "callback-late",
      "a callback was not created in the transaction that closed its round",
      detail,
    );
  counts.add(`callbacks ${message.status}${message.carrier === null ? "" : ` by ${message.carrier}`}`);
  if (parent.endedAt === null && message.status !== "landed") {
    findings.add("callback-lost", `a callback to a live parent is ${message.status}`, detail);
  }
}
