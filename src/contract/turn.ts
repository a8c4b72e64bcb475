import { z } from "zod";
import { Id } from "./id.ts";
import { Receipt } from "./receipt.ts";
import { Usage } from "./session.ts";

export const TurnStatus = z.enum(["running", "completed", "failed", "cancelled", "interrupted"]);
export type TurnStatus = z.infer<typeof TurnStatus>;

export const TurnKind = z.enum(["prompt", "autonomous"]);
export type TurnKind = z.infer<typeof TurnKind>;

/** One stretch of agent work, from taking messages to an outcome. */
export const Turn = z.object({
  id: Id,
  sessionId: Id,
  index: z.number(),
  round: z.number(),
  kind: TurnKind,
  status: TurnStatus,
  description: z.string(),
  messageIds: z.array(Id),
  attempt: z.number(),
  startedAt: z.number(),
  settledAt: z.number().nullable(),
  error: z.string().nullable(),
  stopReason: z.string().nullable(),
  lastAssistantMessage: z.string().nullable(),
  entryRange: z.object({ from: z.number(), to: z.number().nullable() }),
  toolUseCount: z.number(),
  usage: Usage,
  reserved: z
    .object({ tokens: z.number().nullable(), usd: z.number().nullable() })
    .nullable()
    .describe("what it reserves of its budgets while it runs"),
  receipt: Receipt.nullable(),
});
export type Turn = z.infer<typeof Turn>;
