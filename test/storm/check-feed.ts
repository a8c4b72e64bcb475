import { applyEvent, type SessionView, type View } from "../support/feed-view.ts";
import type { Checking } from "./check.ts";

/**
 * Checks I9: the events of a tree have no gap, replaying them gives the state in the tables, and a reader
 * receives each of them exactly once although its connection keeps breaking.
 */
export function checkFeed(checking: Checking): void {
  const { tables, findings, counts } = checking;
  counts.add("events", tables.events.length);
  for (const { rootId, seq } of tables.trees) {
    const seqs = checking.events.filter((event) => event.rootId === rootId).map((event) => event.seq);
    const gap = seqs.findIndex((each, at) => each !== at + 1);
    if (gap !== -1) findings.add("feed-gap", "the events of a tree have a gap", { rootId, at: gap + 1 });
    if (seqs.length !== seq) {
      findings.add("feed-gap", "the tree's event counter differs from its last event", {
        rootId,
        seq,
        events: seqs.length,
      });
    }
  }
  checkReader(checking);
  checkSum(checking);
}

function checkReader({ feed, events, findings, counts }: Checking): void {
  const read = new Map(feed.events.map((event) => [`${event.rootId} ${event.seq}`, event]));
  if (read.size !== feed.events.length) findings.add("feed-twice", "a reader got an event twice");
  for (const [rootId, rows] of Map.groupBy(events, (row) => row.rootId)) {
    const missing = rows.filter((row) => {
      const event = read.get(`${rootId} ${row.seq}`);
      return event === undefined || event.type !== row.type || event.sessionId !== row.sessionId;
    });
    const [first] = missing;
    if (first === undefined) continue;
    // After a reset, a client takes a snapshot that contains the skipped events. So one gap per reset is
    // allowed.
    const gaps = missing.filter((row, at) => missing[at - 1]?.seq !== row.seq - 1).length;
    counts.add("events that a reset skipped", missing.length);
    const detail = {
      rootId,
      count: missing.length,
      gaps,
      resets: feed.resets,
      seq: first.seq,
      type: first.type,
    };
    if (gaps > feed.resets) findings.add("feed-lost", "a reader did not get an event", detail);
  }
}

function checkSum(checking: Checking): void {
  const { tables, findings } = checking;
  const view: View = {};
  for (const event of checking.events) applyEvent(view, { ...event, text: null, at: 0 } as never);
  for (const session of tables.sessions) {
    const shown = view[session.id];
    const held = viewOfSession(checking, session.id);
    if (shown === undefined) {
      findings.add("feed-sum", "no event created this session", { id: session.id });
      continue;
    }
    for (const field of Object.keys(held) as (keyof SessionView)[]) {
      const [a, b] = [JSON.stringify(sorted(shown[field])), JSON.stringify(sorted(held[field]))];
      if (a !== b) {
        const detail = { session: session.name, id: session.id, field, feed: a, table: b };
        findings.add("feed-sum", "events and tables differ", detail);
      }
    }
  }
}

function viewOfSession({ tables, sessions }: Checking, id: string): Partial<SessionView> {
  const session = sessions.get(id)!;
  const turns = tables.turns.filter((turn) => turn.sessionId === id);
  const messages = tables.messages.filter((message) => message.sessionId === id);
  return {
    round: session.round,
    isOpen: session.endedAt === null && Boolean(session.roundOpen),
    outcome: session.outcome,
    isEnded: session.endedAt !== null,
    entries: session.entryCount,
    turns: Object.fromEntries(turns.map((turn) => [turn.idx, turn.status])),
    messages: Object.fromEntries(messages.map((message) => [message.id, message.status])),
  };
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
