import { z } from "zod";
import { Id } from "./id.ts";

export const TriggerStatus = z.enum(["open", "answered", "defaulted", "withdrawn"]);
export type TriggerStatus = z.infer<typeof TriggerStatus>;

/** Something that goes up from a session and may want an answer. */
export const Trigger = z.object({
  id: Id,
  sessionId: Id.describe("the session it comes from"),
  toId: Id.nullable().describe("the session it goes to, null for the person"),
  type: z.string(),
  payload: z.record(z.string(), z.unknown()),
  status: TriggerStatus,
  round: z.number(),
  createdAt: z.number(),
  closedAt: z.number().nullable(),
});
export type Trigger = z.infer<typeof Trigger>;
