import { z } from "zod";
import { SessionRef } from "./id.ts";
import { Session } from "./session.ts";

export const InspectInput = z.strictObject({
  id: SessionRef,
  view: z.enum(["result", "transcript", "diff", "receipt", "inherited"]).default("result"),
  cursor: z.string().max(60).optional(),
  turn: z.string().max(60).optional().describe("one turn, by its id"),
});
export const InspectOutput = z.object({
  session: Session,
  view: z.string(),
  text: z.string(),
  cursor: z.string().nullable().describe("for the next part; null where this is all"),
});
export type InspectOutput = z.infer<typeof InspectOutput>;

export const SearchInput = z.strictObject({
  query: z.string().trim().min(1).max(400),
  id: SessionRef.optional().describe('a session, or "all"; default: your parent, or yourself'),
  cursor: z.string().max(60).optional(),
  limit: z.coerce.number().int().min(1).max(50).default(10),
});
export const SearchHit = z.object({
  sessionId: z.string(),
  shortId: z.string(),
  name: z.string().nullable(),
  index: z.number(),
  turnId: z.string().nullable(),
  author: z.string(),
  kind: z.string(),
  at: z.number(),
  snippet: z.string(),
});
export const SearchOutput = z.object({ hits: z.array(SearchHit), cursor: z.string().nullable() });
export type SearchOutput = z.infer<typeof SearchOutput>;

export const CheckpointInput = z.strictObject({
  id: SessionRef.optional().describe("a session; default: the caller"),
  summary: z.string().trim().min(1).max(20_000),
  entities: z.array(z.string().min(1).max(400)).max(50).default([]),
  constraints: z
    .record(z.string().min(1).max(60), z.string().max(2_000))
    .default({})
    .describe("empty withdraws"),
});
export const CheckpointOutput = z.object({
  checkpointId: z.string(),
  sessionId: z.string(),
  constraints: z.number().describe("how many are active"),
});
export type CheckpointOutput = z.infer<typeof CheckpointOutput>;

export const SubagentInput = z.strictObject({
  tasks: z
    .array(
      z.strictObject({
        task: z.string().min(1),
        profile: z.string().max(60).optional(),
        agent: z.string().max(60).optional(),
      }),
    )
    .min(1)
    .max(8),
  mode: z.enum(["parallel", "chain"]).default("parallel"),
  capMs: z.number().int().min(0).default(45_000).describe("the longest the caller's client allows"),
});
export const SubagentOutput = z.object({
  results: z.array(
    z.object({
      sessionId: z.string().nullable(),
      shortId: z.string().nullable(),
      task: z.string(),
      outcome: z.enum([
        "completed",
        "failed",
        "cancelled",
        "interrupted",
        "working",
        "refused",
        "not_started",
      ]),
      text: z.string().describe("its block, or why it was refused"),
    }),
  ),
  isOver: z.boolean(),
  cursor: z.string().nullable().describe("for wait_session, where the client's limit came first"),
  taken: z.array(z.string()),
});
export type SubagentOutput = z.infer<typeof SubagentOutput>;
