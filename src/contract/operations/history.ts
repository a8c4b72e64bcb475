import { z } from "zod";
import { HistoryProblem, HistoryScan, Project, ProjectAgent, ProjectSession } from "../history.ts";
import { SessionRef } from "../id.ts";
import { FOUND, type OperationSpec } from "./spec.ts";

const InProject = z.strictObject({
  projectId: z.string().min(1).max(200),
  sessionId: SessionRef.describe("a session's id, or the agent's own id for it"),
  cursor: z.string().max(60).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
});

/** Operations on the files that agents left on disk. */
export const HISTORY = {
  import: {
    summary: "Read what agents left on disk, and keep up with it from then on.",
    input: z.strictObject({
      exclude: z
        .array(z.string().min(1).max(1000))
        .max(200)
        .optional()
        .describe("project folders to leave out, as globs; replaces the earlier list"),
      again: z.boolean().default(false).describe("scan everything now, even if it was scanned before"),
    }),
    output: HistoryScan,
    refusals: ["not_available"],
    http: { method: "POST", path: "/api/import" },
    cli: "import",
    sessions: false,
  },
  imported: {
    summary: "Progress of the import of what agents left on disk, and the files that could not be read.",
    input: z.strictObject({
      problems: z.coerce.number().int().min(0).max(1000).default(0),
      count: z.stringbool().or(z.boolean()).default(false).describe("count what is on disk"),
    }),
    output: z.object({
      scan: HistoryScan,
      problems: z.array(HistoryProblem),
      onDisk: z
        .array(z.object({ agent: z.string(), sessions: z.number() }))
        .nullable()
        .describe("what an import would find, if none was requested yet and `count` is set"),
    }),
    refusals: [],
    http: { method: "GET", path: "/api/import" },
    cli: "import",
    sessions: false,
  },
  projects: {
    summary: "The folders that sessions worked in, last used first.",
    input: z.strictObject({}),
    output: z.object({ projects: z.array(Project) }),
    refusals: [],
    http: { method: "GET", path: "/api/projects" },
    sessions: true,
    right: "read",
  },
  projectSession: {
    summary: "One session of a project: its last page, and the true state of every sub-agent it started.",
    input: InProject,
    output: ProjectSession,
    refusals: [...FOUND, "invalid_input"],
    http: { method: "GET", path: "/api/projects/:projectId/sessions/:sessionId" },
    sessions: true,
    right: "read",
  },
  projectAgent: {
    summary: "One sub-agent's conversation, paged from its end.",
    input: InProject.extend({ agentId: z.string().min(1).max(200) }),
    output: ProjectAgent,
    refusals: [...FOUND, "invalid_input"],
    http: { method: "GET", path: "/api/projects/:projectId/sessions/:sessionId/agents/:agentId" },
    sessions: true,
    right: "read",
  },
} as const satisfies Record<string, OperationSpec>;
