import { z } from "zod";
import { Id } from "./id.ts";

export const Permission = z.enum(["read-only", "ask", "workspace", "full"]);
export type Permission = z.infer<typeof Permission>;

export const Outcome = z.enum(["completed", "failed", "cancelled", "interrupted"]);
export type Outcome = z.infer<typeof Outcome>;

export const SessionStatus = z.enum(["idle", "running", "waiting", "ended"]);
export type SessionStatus = z.infer<typeof SessionStatus>;

export const WaitingOn = z.enum(["trigger", "children", "slot", "limit", "budget", "node"]);

export const Waiting = z.object({
  on: WaitingOn,
  triggerId: Id.optional(),
  since: z.number(),
  until: z.number().optional(),
});
export type Waiting = z.infer<typeof Waiting>;

export const CallbackConfig = z.object({
  enabled: z.boolean().default(true),
  includeLastMessage: z.boolean().default(true),
  includeOriginalPrompt: z.boolean().default(false),
  template: z.string().max(20_000).nullable().default(null),
  when: z.enum(["completion", "turn"]).default("completion"),
  batch: z.boolean().default(false),
});
export type CallbackConfig = z.infer<typeof CallbackConfig>;
export const CallbackPatch = z
  .strictObject({
    enabled: z.boolean(),
    includeLastMessage: z.boolean(),
    includeOriginalPrompt: z.boolean(),
    template: z.string().max(20_000).nullable(),
    when: z.enum(["completion", "turn"]),
    batch: z.boolean(),
  })
  .partial();
export type CallbackPatch = z.infer<typeof CallbackPatch>;

export const Usage = z.object({
  inputTokens: z.number().default(0),
  cachedTokens: z.number().default(0),
  outputTokens: z.number().default(0),
  usd: z.number().nullable().default(null),
  estimated: z
    .boolean()
    .optional()
    .describe(
      "part of it is what was reserved, or missing where nothing was, because the agent did not say all it used",
    ),
});
export type Usage = z.infer<typeof Usage>;

export const Origin = z.enum(["managed", "attached", "imported"]);
export const Source = z.enum(["cli", "page", "http", "mcp", "subsession", "hook", "import"]);
export const OnParentEnd = z.enum(["cancel", "detach"]);
export const EndReason = z.enum(["cancelled", "acked", "removed", "gone", "rebuilt"]);

/** The settings that were applied; `spawnConfig` has those that were requested. */
export const Effective = z.object({
  agent: z.string(),
  agentVersion: z.string().nullable(),
  model: z.string().nullable(),
  profile: z.string(),
  permission: Permission,
  tools: z.array(z.string()).nullable(),
  disallowedTools: z
    .array(z.string())
    .optional()
    .describe("tools withheld from it, even if it has no list of tools"),
  mcp: z.array(z.string()).optional().describe("the MCP servers it is restricted to, besides Kinfold's own"),
  enforcement: z.enum(["os", "agent", "asked"]).optional().describe("how its permission is enforced"),
  limits: z.record(z.string(), z.number()),
  counts: z
    .record(z.string(), z.number())
    .optional()
    .describe("limits on depth, children, sessions and prompts that its project's kinfold.yaml lowers"),
  loweredBy: z
    .record(z.string(), z.string())
    .optional()
    .describe("settings that its project's kinfold.yaml lowers, each with file and line"),
  node: z.string(),
  cwd: z.string(),
  folder: z
    .object({ dev: z.number(), ino: z.number() })
    .optional()
    .describe("the identity of the folder `cwd`; a process is started in no other"),
  roots: z
    .array(z.string())
    .optional()
    .describe("folders that it and its descendants may work in, if an API key or its parent limits them"),
  workspace: z.enum(["shared", "clone"]),
  inherit: z.enum(["none", "brief", "tail", "fork"]),
});
export type Effective = z.infer<typeof Effective>;

export const Evidence = z.object({
  state: z.string(),
  reason: z.string(),
  confidence: z.enum(["certain", "likely", "guess"]),
  at: z.number(),
});
export type Evidence = z.infer<typeof Evidence>;

export const SpawnPoint = z.object({ turnId: Id, entryIndex: z.number() });

/** A durable line of work with one agent; it outlives every process. */
export const Session = z.object({
  id: Id,
  shortId: z.string(),
  name: z.string().nullable(),
  parentId: Id.nullable(),
  rootId: Id,
  depth: z.number(),
  detachedAt: z.number().nullable(),
  spawnPoint: SpawnPoint.nullable(),
  spawnConfig: z.record(z.string(), z.unknown()),
  effective: Effective,
  title: z.string().nullable(),
  agent: z.string(),
  profile: z.string(),
  model: z.string().nullable(),
  cwd: z.string(),
  node: z.string(),
  origin: Origin,
  source: Source,
  status: SessionStatus,
  waiting: Waiting.nullable(),
  round: z.number(),
  outcome: Outcome.nullable().describe("how the last closed round ended"),
  outcomeReason: z.string().nullable(),
  endedBy: z.string().nullable().describe("who ended it, in words"),
  ready: z.boolean(),
  evidence: Evidence,
  seen: z.boolean(),
  callback: CallbackConfig,
  onParentEnd: OnParentEnd,
  scope: z.string(),
  agentSessionId: z.string().nullable(),
  messageCount: z.number(),
  toolUseCount: z.number(),
  usage: Usage,
  treeUsage: Usage,
  unread: z.number(),
  createdAt: z.number(),
  updatedAt: z.number(),
  lastActivityAt: z.number(),
  endedAt: z.number().nullable(),
  rebuilt: z.boolean().optional().describe("restored from its rollout after the store was lost"),
  url: z.string(),
});
export type Session = z.infer<typeof Session>;
