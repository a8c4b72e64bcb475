import { z } from "zod";

/** How far a session that is only known from its files has come; every one is held by evidence. */
export const HistoryState = z.enum([
  "running",
  "waiting",
  "completed",
  "failed",
  "interrupted",
  "cancelled",
  "orphaned",
  "pending",
  "unknown",
]);
export type HistoryState = z.infer<typeof HistoryState>;

export const Confidence = z.enum(["certain", "likely", "guess"]);
export type Confidence = z.infer<typeof Confidence>;

/** The true state of a sub-agent that an agent started by itself, read from its files. */
export const AgentStatus = z.object({
  agentId: z.string(),
  state: HistoryState,
  error: z.string().nullable(),
  messageCount: z.number(),
  lastUpdated: z.number().nullable(),
  durationMs: z.number().nullable(),
  tokens: z.number().nullable(),
  toolUseId: z.string().nullable().describe("the call that started it; null where no link could be proven"),
  parentAgentId: z
    .string()
    .nullable()
    .describe("the sub-agent that started it; null below the session itself"),
  depth: z.number(),
  description: z.string().nullable(),
  evidence: z.string().describe("what the state was read from, in words"),
  confidence: Confidence,
});
export type AgentStatus = z.infer<typeof AgentStatus>;
