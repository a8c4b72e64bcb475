import { z } from "zod";
import { Id } from "./id.ts";

export const EventType = z.enum([
  "session.created",
  "session.spawned",
  "session.updated",
  "session.ended",
  "session.detached",
  "session.reopened",
  "session.imported",
  "round.opened",
  "round.closed",
  "turn.started",
  "turn.settled",
  "message.admitted",
  "message.taken",
  "message.landed",
  "message.returned",
  "message.void",
  "entry.opened",
  "entry.appended",
  "trigger.opened",
  "trigger.closed",
  "agent.started",
  "agent.exited",
  "notice",
]);
export type EventType = z.infer<typeof EventType>;

/** A fact about one tree, identified by `(rootId, seq)`. Only `seq` gives the order inside a tree. */
export const Event = z.object({
  rootId: Id,
  seq: z.number(),
  sessionId: Id,
  type: EventType,
  text: z.string().nullable().describe("a sentence for a person, if there is one"),
  data: z.record(z.string(), z.unknown()),
  at: z.number(),
});
export type Event = z.infer<typeof Event>;

/** A piece of text from a running agent. It has no number and is never stored. */
export const Fragment = z.object({
  rootId: Id,
  sessionId: Id,
  turnId: Id,
  kind: z.enum(["text", "thought"]),
  text: z.string(),
});
export type Fragment = z.infer<typeof Fragment>;
