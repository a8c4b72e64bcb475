import { Permission } from "../../src/contract/session.ts";
import type { Checking } from "./check.ts";
import type { SessionRow } from "./tables.ts";

/** From the strictest to the loosest. */
const PERMISSIONS: readonly string[] = Permission.options;
/** Events that must not occur in a session that has ended. */
const ACTIVITY = new Set([
  "turn.started",
  "agent.started",
  "message.taken",
  "round.opened",
  "session.spawned",
]);

/** Checks rounds, turns, leases, triggers and the ends of sessions: I5 to I8, I10 and I11. */
export function checkLife(checking: Checking): void {
  checkRounds(checking);
  checkEnds(checking);
  checkTurns(checking);
  checkTriggers(checking);
  checkChildren(checking);
  checkCancelled(checking);
  const { tables, sessions, findings } = checking;
  for (const lease of tables.leases) {
    const session = sessions.get(lease.sessionId)?.name;
    findings.add("lease-left", "a lease outlived its process", { session, ...lease });
  }
}

function checkRounds({ events, tables, findings, counts }: Checking): void {
  counts.add("sessions", tables.sessions.length);
  for (const session of tables.sessions) {
    const own = events.filter((event) => event.sessionId === session.id);
    const opened = own.filter((event) => event.type === "round.opened").map((event) => event.data["round"]);
    const closed = own.filter((event) => event.type === "round.closed").map((event) => event.data["round"]);
    counts.add("rounds", closed.length);
    const detail = { session: session.name, id: session.id, opened, closed };
    if (new Set(opened).size !== opened.length) findings.add("round-twice", "a round opened twice", detail);
    if (new Set(closed).size !== closed.length) findings.add("round-twice", "a round closed twice", detail);
    const isOpen = session.endedAt === null && Boolean(session.roundOpen);
    if (isOpen) findings.add("stuck", "a round is still open", detail);
  }
}

/** Checks I6 in the events: nothing begins after the tombstone. */
function checkEnds({ events, sessions, findings }: Checking): void {
  const ended = new Map<string, number>();
  for (const event of events) {
    const at = ended.get(event.sessionId);
    const detail = { session: sessions.get(event.sessionId)?.name, id: event.sessionId, type: event.type };
    if (event.type === "session.ended") {
      if (at !== undefined) findings.add("ended-twice", "a session ended twice", detail);
      ended.set(event.sessionId, event.seq);
    } else if (at !== undefined && ACTIVITY.has(event.type)) {
      findings.add("after-end", "something began after the end", { ...detail, ended: at, seq: event.seq });
    }
  }
}

function checkTurns({ tables, sessions, events, findings, counts }: Checking): void {
  for (const turn of tables.turns) {
    const session = sessions.get(turn.sessionId)?.name;
    const detail = { session, ...turn };
    counts.add(`turns: ${turn.status}`);
    if (turn.attempt > 1) counts.add("turns resumed");
    if (turn.status === "running") findings.add("stuck", "a turn runs without a process", detail);
    const settled = events.filter((e) => e.type === "turn.settled" && e.data["turnId"] === turn.id);
    if (turn.status !== "running" && settled.length !== 1) {
      findings.add("settled-twice", `a turn settled ${settled.length} times`, detail);
    }
  }
}

/** Checks I8: a question has at most one answer and is closed at the end. */
function checkTriggers({ tables, events, sessions, findings, counts }: Checking): void {
  const answers = Map.groupBy(
    tables.messages.filter((message) => message.kind === "answer"),
    (message) => String(message.metadata["triggerId"]),
  );
  for (const trigger of tables.triggers) {
    const isAsking = trigger.type === "ask_user_question" || trigger.type === "plan_review";
    if (!isAsking) continue;
    counts.add(`questions: ${trigger.status}`);
    const detail = { session: sessions.get(trigger.sessionId)?.name, ...trigger };
    const closed = events.filter((e) => e.type === "trigger.closed" && e.data["triggerId"] === trigger.id);
    if (closed.length > 1) findings.add("answered-twice", "a question was closed twice", detail);
    if ((answers.get(trigger.id) ?? []).length > 1) {
      findings.add("answered-twice", "a question has two answers", detail);
    }
    if (trigger.status === "open") findings.add("stuck", "a question is still open", detail);
  }
}

/** Checks I7 and I10: no child has more permission than its parent, and one spawn creates one child. */
function checkChildren({ tables, sessions, findings }: Checking): void {
  const named = new Map<string, SessionRow>();
  for (const child of tables.sessions) {
    const parent = child.parentId === null ? undefined : sessions.get(child.parentId);
    if (parent === undefined) continue;
    const key = `${parent.id} ${child.name}`;
    const other = named.get(key);
    const detail = { parent: parent.name, name: child.name, ids: [other?.id, child.id] };
    if (other !== undefined) findings.add("spawned-twice", "one spawn made two children", detail);
    named.set(key, child);
    const [above, below] = [parent, child].map((each) => PERMISSIONS.indexOf(each.effective.permission));
    if (below! > above!) findings.add("too-powerful", "a child may do more than its parent", detail);
  }
}

/**
 * Checks I6 in the agents' journals: once a cancel has reported that no process is left, the journals of the
 * cancelled sessions do not grow.
 */
function checkCancelled({ cancelled, tables, journalSizes, findings }: Checking): void {
  for (const { sessionId, sizes } of cancelled) {
    for (const session of subtree(tables.sessions, sessionId)) {
      const file = session.agentSessionId;
      if (file === null || session.endedAt === null) continue;
      const before = sizes.get(file);
      const after = journalSizes.get(file);
      if (before === after) continue;
      const detail = { session: session.name, id: session.id, journal: file, before, after };
      findings.add("after-end", "an agent continued after a cancel that reported nothing left", detail);
    }
  }
}

function subtree(sessions: readonly SessionRow[], id: string): SessionRow[] {
  const found = sessions.filter((each) => each.id === id);
  for (let at = 0; at < found.length; at += 1) {
    found.push(...sessions.filter((each) => each.parentId === found[at]!.id && each.detachedAt === null));
  }
  return found;
}
