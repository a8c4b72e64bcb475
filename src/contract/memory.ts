import { z } from "zod";
import { EntryAuthor, EntryKind } from "./entry.ts";
import { SessionRef } from "./id.ts";
import { Session } from "./session.ts";
import { Attention } from "./wait.ts";

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
  cursor: z.string().nullable().describe("for the next part; null if this is all"),
});
export type InspectOutput = z.infer<typeof InspectOutput>;

export const SearchInput = z.strictObject({
  query: z
    .string()
    .max(2_000)
    .describe(
      'words (more of them rank higher), "phrases", begin*, -without, agent: author: tool: path: before: after: tree: sort:newest',
    ),
  id: SessionRef.optional().describe('a session, or "all"; default: your parent, or yourself'),
  sort: z.enum(["relevance", "newest"]).optional().describe("default: relevance, with recency"),
  cursor: z.string().max(60).optional(),
  limit: z.coerce.number().int().min(1).max(50).default(10),
});
export const SearchHit = z.object({
  sessionId: z.string(),
  shortId: z.string(),
  name: z.string().nullable(),
  opens: z.boolean().describe("whether the caller may open the session; if not, it gets only this excerpt"),
  lineage: z.array(z.string()).describe("names or short ids, from the root down to the session itself"),
  agent: z.string(),
  turnId: z.string().nullable(),
  turn: z.number().nullable().describe("the turn's number in its session, from 0"),
  index: z.number().describe("the entry's number in its session, from 0"),
  author: EntryAuthor,
  kind: EntryKind,
  at: z.number(),
  open: z.boolean().optional().describe("it is still being written"),
  snippet: z.string().describe("an excerpt in one line"),
  marks: z
    .array(z.tuple([z.number(), z.number()]))
    .describe("the matches in the snippet: first character, and the one after the last"),
});
export type SearchHit = z.infer<typeof SearchHit>;
export const SearchOutput = z.object({
  hits: z.array(SearchHit),
  cursor: z.string().nullable().describe("for the next page; null if this is the last"),
  total: z.number().nullable().describe("null if there are too many to count, and on later pages"),
  isWhole: z.boolean().describe("false while older entries are still being indexed"),
  near: z
    .array(z.object({ word: z.string(), instead: z.string() }))
    .describe("without a hit: similar words that occur"),
  elsewhere: z
    .number()
    .nullable()
    .describe("without a hit: how many there are in the whole scope without the filters"),
});
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
  needsYou: z.array(Attention).describe("questions asked meanwhile; the reply returns early for them"),
  isOver: z.boolean(),
  cursor: z.string().nullable().describe("for wait_session, if the client's time limit came first"),
  taken: z.array(z.string()),
});
export type SubagentOutput = z.infer<typeof SubagentOutput>;
