import { z } from "zod";
import { SessionRef } from "./id.ts";
import { Receipt } from "./receipt.ts";
import { Outcome, Usage } from "./session.ts";

export const WaitInput = z.strictObject({
  id: SessionRef,
  timeoutMs: z.coerce.number().int().max(86_400_000).default(45_000),
  until: z.enum(["completion", "turn"]).default("completion"),
});

/** The state of a session's latest round; `outcome` is null while the round is open. */
export const WaitOutput = z.object({
  sessionId: z.string(),
  name: z.string().nullable(),
  outcome: Outcome.nullable(),
  status: z.string(),
  result: z
    .string()
    .nullable()
    .describe("the report: its last message that was not merely a reply to a child's end"),
  lastWords: z.string().nullable().describe("its last message, if that is not the report"),
  error: z.string().nullable(),
  timedOut: z.boolean(),
  receipt: Receipt.nullable(),
  usage: Usage,
});
export type WaitOutput = z.infer<typeof WaitOutput>;

export const WaitChildrenInput = z.strictObject({
  ids: z.array(SessionRef).max(64).optional().describe("default: all open children"),
  until: z.union([z.enum(["any", "all"]), z.number().int().min(1)]).default("any"),
  timeoutMs: z.number().int().max(86_400_000).optional().describe("0: just look"),
  cursor: z.string().max(2_000).optional(),
  capMs: z.number().int().min(0).default(45_000).describe("the longest the caller's client allows"),
  sourceForm: z.boolean().default(false).describe("one session_id, as in the source design"),
});

export const ChildEnd = z.object({
  sessionId: z.string(),
  shortId: z.string(),
  name: z.string().nullable(),
  outcome: Outcome,
  result: z.string().nullable().describe("its report"),
  lastWords: z.string().nullable().describe("its last message, if that is not the report"),
  error: z.string().nullable(),
  deliveryId: z.string().nullable(),
  delivered: z.boolean().describe("true if its callback was delivered before"),
  block: z.string().describe("the callback's text without its last line"),
});
export type ChildEnd = z.infer<typeof ChildEnd>;

/** A question to the waiting caller, or an error that makes further waiting pointless. */
export const Attention = z.object({
  sessionId: z.string(),
  name: z.string().nullable(),
  what: z.string().describe("the trigger's text, with the id for the answer"),
  type: z.string().describe("the trigger's type; `session_error` needs no answer"),
  triggerId: z.string(),
  deliveryId: z.string(),
});
export type Attention = z.infer<typeof Attention>;

export const WaitChildrenOutput = z.object({
  done: z.array(ChildEnd),
  needsYou: z.array(Attention),
  working: z.array(
    z.object({ sessionId: z.string(), shortId: z.string(), name: z.string().nullable(), doing: z.string() }),
  ),
  timedOut: z.boolean(),
  capped: z.boolean().describe("the client's time limit ended the wait"),
  waitedMs: z.number(),
  cursor: z.string(),
  taken: z
    .array(z.string())
    .describe("messages this reply carries; returned to the inbox if it does not arrive"),
});
export type WaitChildrenOutput = z.infer<typeof WaitChildrenOutput>;
