import { z } from "zod";
import { EntryAuthor, EntryBody, EntryKind } from "./entry.ts";
import { Id } from "./id.ts";
import { Origin, Session } from "./session.ts";

/** The state of a session that we know only from its files, as inferred from them. */
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

/** The state of a sub-agent that an agent started without Kinfold, read from the sub-agent's files. */
export const AgentStatus = z.object({
  agentId: z.string(),
  state: HistoryState,
  error: z.string().nullable(),
  messageCount: z.number(),
  lastUpdated: z.number().nullable(),
  durationMs: z.number().nullable(),
  tokens: z.number().nullable(),
  toolUseId: z.string().nullable().describe("the call that started it; null if no link is proven"),
  parentAgentId: z
    .string()
    .nullable()
    .describe("the sub-agent that started it; null below the session itself"),
  depth: z.number(),
  description: z.string().nullable(),
  evidence: z.string().describe("the evidence for the state, in words"),
  confidence: Confidence,
});
export type AgentStatus = z.infer<typeof AgentStatus>;

/** A folder in which sessions of any origin have worked. */
export const Project = z.object({
  id: z.string(),
  cwd: z.string(),
  name: z.string(),
  sessions: z.number().describe("at the top of their trees"),
  subagents: z.number(),
  atWork: z.number().describe("running or waiting now"),
  agents: z.record(z.string(), z.number()).describe("sessions by agent"),
  origins: z.partialRecord(Origin, z.number()),
  lastActivityAt: z.number(),
});
export type Project = z.infer<typeof Project>;

/** An entry read from an agent's own file. It is complete, even if the store has only a part of it. */
export const HistoryItem = z.object({
  ref: z.string().describe("the agent's own id for it"),
  author: EntryAuthor,
  kind: EntryKind,
  body: EntryBody,
  isSubagent: z.boolean(),
  at: z.number(),
  agentIds: z.array(z.string()).optional().describe("for a call: the sub-agents it started"),
  offPath: z
    .boolean()
    .optional()
    .describe("the agent was rewound to before this entry: it is no longer part of the conversation"),
});
export type HistoryItem = z.infer<typeof HistoryItem>;

/** One page of the entries in an agent's file. The first page is the end of the file. */
export const HistoryPage = z.object({
  items: z.array(HistoryItem).describe("in the file's order"),
  cursor: z.string().nullable().describe("for the page before this one; null at the beginning"),
  problem: z.string().nullable().describe("why the file could not be read; the store still has its entries"),
});
export type HistoryPage = z.infer<typeof HistoryPage>;

export const ProjectSession = z.object({
  project: Project,
  session: Session,
  agentStatuses: z.record(z.string(), AgentStatus).describe("every sub-agent below the session, by its id"),
  calls: z
    .record(z.string(), z.array(z.string()))
    .describe("the sub-agents that each call started, by its id"),
  sessionIds: z.record(z.string(), Id).describe("each sub-agent's own session, if it left a file"),
  page: HistoryPage,
});

export const ProjectAgent = z.object({
  project: Project,
  session: Session.nullable().describe("null if it left no file"),
  agent: AgentStatus,
  page: HistoryPage,
});

/** A file that could not be read in full. */
export const HistoryProblem = z.object({
  format: z.string(),
  path: z.string(),
  reason: z.string(),
  badLines: z.number().describe("lines that could not be parsed; 0 if the file could not be read at all"),
});
export type HistoryProblem = z.infer<typeof HistoryProblem>;

/** Progress of the scan of the files that agents left on disk. */
export const HistoryScan = z.object({
  enabled: z.boolean().describe("an import was requested: the daemon keeps up from then on"),
  phase: z.enum(["off", "starting", "listing", "reading", "watching", "failed"]),
  exclude: z.array(z.string()),
  error: z.string().nullable(),
  startedAt: z.number().nullable(),
  listedAt: z.number().nullable().describe("when all files were listed"),
  readAt: z.number().nullable().describe("when all files were read"),
  files: z.number(),
  filesRead: z.number().describe("files that are fully read"),
  bytes: z.number(),
  bytesRead: z.number(),
  excluded: z.number(),
  found: z
    .array(
      z.object({
        agent: z.string(),
        format: z.string(),
        roots: z.array(z.string()),
        sessions: z.number(),
        subagents: z.number(),
        states: z.partialRecord(HistoryState, z.number()),
      }),
    )
    .describe("by agent"),
  problemCount: z.number(),
});
export type HistoryScan = z.infer<typeof HistoryScan>;
