import type { Event } from "../../src/contract/index.ts";
import type { Client } from "./daemon.ts";

/** What a client shows of a session, either read from the tables or built from events. */
export interface SessionView {
  readonly name: string | null;
  readonly parentId: string | null;
  readonly depth: number;
  round: number;
  isOpen: boolean;
  outcome: string | null;
  isEnded: boolean;
  entries: number;
  readonly turns: Record<number, string>;
  readonly messages: Record<string, string>;
}

export type View = Record<string, SessionView>;

/** Applies one event. Applying an event that the snapshot already contains has no effect. */
export function applyEvent(view: View, event: Event): void {
  const { data } = event;
  if (event.type === "session.created") {
    view[event.sessionId] ??= newSession(data);
    return;
  }
  const session = view[event.sessionId];
  if (session === undefined) throw new Error(`${event.type} of a session that nobody created`);
  const message = String(data["messageId"]);
  switch (event.type) {
    case "round.opened":
      session.round = Number(data["round"]);
      session.isOpen = true;
      break;
    case "round.closed":
      session.isOpen = false;
      session.outcome = String(data["outcome"]);
      break;
    case "session.ended":
      session.isEnded = true;
      session.isOpen = false;
      break;
    case "session.reopened":
      session.isEnded = false;
      break;
    case "turn.started":
      session.turns[Number(data["index"])] = "running";
      break;
    case "turn.settled":
      session.turns[Number(data["index"])] = String(data["outcome"]);
      break;
    case "entry.appended":
      session.entries = Math.max(session.entries, Number(data["index"]) + 1);
      break;
    case "message.admitted":
    case "message.returned":
      session.messages[message] = "queued";
      break;
    case "message.taken":
    case "message.landed":
    case "message.void":
      session.messages[message] = event.type.slice("message.".length);
      break;
  }
}

export function viewOf(events: readonly Event[]): View {
  const view: View = {};
  for (const event of events) applyEvent(view, event);
  return view;
}

/** Returns the view that `viewOf` builds from events, but reads it from the tables through the operations. */
export async function tablesOf(client: Client, rootIds: readonly string[]): Promise<View> {
  const view: View = {};
  for (const rootId of rootIds) {
    const { sessions } = await client.tree({ id: rootId });
    for (const session of sessions) {
      const { id, name, parentId, depth, round, outcome, status } = session;
      const { turns } = await client.turns({ id, limit: 500 });
      const { messages } = await client.inbox({ id, all: true });
      const { total } = await client.entries({ id, limit: 1 });
      view[id] = {
        name,
        parentId,
        depth,
        round,
        isOpen: status === "running" || status === "waiting",
        outcome,
        isEnded: status === "ended",
        entries: total,
        turns: Object.fromEntries(turns.map((turn) => [turn.index, turn.status])),
        messages: Object.fromEntries(messages.map((message) => [message.id, message.status])),
      };
    }
  }
  return view;
}

function newSession(data: Event["data"]): SessionView {
  return {
    name: data["name"] as string | null,
    parentId: data["parentId"] as string | null,
    depth: Number(data["depth"]),
    round: 0,
    isOpen: false,
    outcome: null,
    isEnded: false,
    entries: 0,
    turns: {},
    messages: {},
  };
}
