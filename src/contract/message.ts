import { z } from "zod";
import { Id } from "./id.ts";

export const MessageKind = z.enum(["prompt", "callback", "trigger", "answer", "tell", "notice"]);
export type MessageKind = z.infer<typeof MessageKind>;

export const Delivery = z.enum(["steer", "followUp"]);
export type Delivery = z.infer<typeof Delivery>;

export const MessageStatus = z.enum(["queued", "taken", "landed", "void"]);
export type MessageStatus = z.infer<typeof MessageStatus>;

export const Carrier = z.enum(["prompt", "steer", "tool", "hook", "task"]);
export type Carrier = z.infer<typeof Carrier>;

export const Sender = z.object({
  kind: z.enum(["person", "session", "daemon", "outside"]),
  id: z.string().nullable(),
});

/** Something addressed to a session, with a sender and an idempotency key. */
export const Message = z.object({
  id: Id,
  sessionId: Id,
  position: z.number(),
  kind: MessageKind,
  sender: Sender,
  delivery: Delivery,
  status: MessageStatus,
  carrier: Carrier.nullable(),
  deliveryId: z.string(),
  key: z.string().nullable(),
  turnId: Id.nullable(),
  body: z.string().nullable().describe("null for a callback that has not been rendered yet"),
  metadata: z.record(z.string(), z.unknown()),
  voidReason: z.string().nullable(),
  admittedAt: z.number(),
});
export type Message = z.infer<typeof Message>;
