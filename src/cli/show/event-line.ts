import type { Event, Session } from "../../contract/index.ts";
import { labelOf } from "../sessions.ts";
import { clock, cleanLine } from "../terminal/text.ts";

export function eventLine(event: Event, session: Session | undefined): string | null {
  const text = event.text === null ? sentence(event) : cleanLine(event.text);
  if (text === undefined) return null;
  const who = session === undefined ? event.sessionId.slice(-8) : labelOf(session);
  return `${clock(event.at)}  ${who.padEnd(14)}  ${text}`;
}

function sentence(event: Event): string | undefined {
  const { asked, by, toPerson } = event.data;
  if (event.type === "trigger.opened" && typeof asked === "string")
    return `${toPerson === true ? "needs you" : "asks its parent"}: "${cleanLine(asked)}"`;
  if (event.type === "trigger.closed" && typeof by === "string") return `was answered by ${cleanLine(by)}`;
  return SENTENCES[event.type];
}

/** Texts for events that contain no text. Such an event is shown only if it is listed here. */
const SENTENCES: Partial<Record<Event["type"], string>> = {
  "session.created": "created",
  "session.ended": "ended",
  "session.detached": "detached from its parent",
  "session.reopened": "reopened",
  "session.imported": "read from disk",
  "round.opened": "round opened",
  "round.closed": "round closed",
  "turn.started": "turn started",
  "turn.settled": "turn settled",
  "message.admitted": "message accepted",
  "message.returned": "message given back to its inbox",
  "message.void": "message void",
  "trigger.opened": "asks",
  "trigger.closed": "was answered",
  "agent.started": "agent started",
  "agent.exited": "agent ended",
  notice: "notice",
};
