import { z } from "zod";
import { Agent } from "../agent.ts";
import type { OperationSpec } from "./spec.ts";
import { Models } from "../profile.ts";
import { Permission } from "../session.ts";
import { Token, TokenRight } from "../token.ts";

export const Health = z.object({
  ok: z.boolean(),
  version: z.string(),
  contract: z.string(),
  pid: z.number(),
  node: z.string(),
  boot: z.string(),
  epoch: z.string(),
  store: z.enum(["sqlite", "postgres"]),
  startedAt: z.number(),
  storeTrouble: z
    .object({ since: z.number(), text: z.string() })
    .optional()
    .describe("the store does not answer, and the daemon is waiting for it"),
  counts: z.object({
    running: z.number(),
    waiting: z.number(),
    open: z.number(),
    unseen: z.number(),
    sessions: z.number(),
    families: z.number(),
  }),
  usageToday: z.object({ tokens: z.number(), usd: z.number().nullable() }),
  countedAt: z
    .number()
    .nullable()
    .describe("when counts and usage were counted; null if the store has not answered yet"),
});
export type Health = z.infer<typeof Health>;

export const DAEMON = {
  health: {
    summary: "Report the daemon's health, its version and its load.",
    input: z.strictObject({}),
    output: Health,
    refusals: [],
    http: { method: "GET", path: "/api/health" },
    cli: "kinfold",
    sessions: true,
    right: "read",
  },
  agents: {
    summary: "The agents on this node: installed, version, what each can do.",
    input: z.strictObject({}),
    output: z.object({ agents: z.array(Agent) }),
    refusals: [],
    http: { method: "GET", path: "/api/agents" },
    cli: "doctor",
    sessions: true,
    right: "read",
  },
  models: {
    summary: "Installed agents, their models, and the available profiles.",
    input: z.strictObject({ agent: z.string().max(60).optional() }),
    output: Models,
    refusals: ["unknown_agent"],
    http: { method: "GET", path: "/api/models" },
    mcp: "list_models",
    cli: "agents",
    sessions: true,
    right: "read",
  },
  createToken: {
    summary: "Create an API key with rights and an expiry; only this answer contains the secret.",
    input: z.strictObject({
      name: z.string().trim().min(1).max(60),
      can: z.array(TokenRight).min(1).default(["read"]),
      scope: z.string().min(1).max(190).nullable().default(null),
      ceiling: Permission.default("workspace").describe(
        "the highest permission of a session it may start or write to",
      ),
      roots: z
        .array(z.string().min(1).max(4096))
        .min(1)
        .max(20)
        .nullable()
        .default(null)
        .describe("folders that those sessions may work in, absolute; required with spawn"),
      expiresInMs: z.number().int().min(1_000).nullable().default(null),
    }),
    output: z.object({ token: Token, secret: z.string() }),
    refusals: [],
    http: { method: "POST", path: "/api/tokens" },
    cli: "tokens",
    sessions: false,
  },
  listTokens: {
    summary: "All API keys, without their secrets.",
    input: z.strictObject({}),
    output: z.object({ tokens: z.array(Token) }),
    refusals: [],
    http: { method: "GET", path: "/api/tokens" },
    cli: "tokens",
    sessions: false,
  },
  revokeToken: {
    summary: "Revoke an API key: the next request with it is refused, and open streams end.",
    input: z.strictObject({ id: z.string().min(4).max(60) }),
    output: z.object({ token: Token }),
    refusals: ["not_found"],
    http: { method: "POST", path: "/api/tokens/:id/revoke" },
    cli: "tokens",
    sessions: false,
  },
  backup: {
    summary: "Write a consistent copy of the embedded store to a file.",
    input: z.strictObject({ path: z.string().min(1).max(4096) }),
    output: z.object({ path: z.string(), bytes: z.number() }),
    refusals: ["not_available", "invalid_input", "disk_full"],
    http: { method: "POST", path: "/api/backup" },
    cli: "backup",
    sessions: false,
  },
} as const satisfies Record<string, OperationSpec>;
