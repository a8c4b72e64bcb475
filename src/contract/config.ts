import { z } from "zod";
import { CallbackPatch, Permission } from "./session.ts";

/** Limits on numbers of sessions, turns, processes and the like. `Budget` limits cost and time. */
export const Limits = z.strictObject({
  depthMax: z.int().min(1).max(100).default(5).describe("generations below a root"),
  childrenMax: z.int().min(1).default(8).describe("open children per session"),
  sessionsMax: z.int().min(1).default(64).describe("open sessions per tree"),
  spawnsPerMinuteMax: z.int().min(1).default(20).describe("spawns per tree and minute"),
  spawnsMax: z.int().min(1).default(500).describe("spawns in a tree's life"),
  turnsMax: z.int().min(1).default(16).describe("running turns per node; above this a child waits"),
  processesMax: z.int().min(1).default(32).describe("agent processes per node"),
  requestsMax: z
    .int()
    .min(1)
    .max(1_000)
    .default(32)
    .describe("unanswered questions and permission requests per session"),
  entryCharsMax: z
    .int()
    .min(1_000)
    .max(8_000_000)
    .default(1_000_000)
    .describe("characters of one message in its entry; the rest goes to a file"),
  promptBytesMax: z
    .int()
    .min(1)
    .max(2_097_152)
    .default(1_048_576)
    .describe("bytes in one prompt; at most 2 MB"),
});
export type Limits = z.infer<typeof Limits>;

/** USD per million tokens. */
export const Price = z.strictObject({
  input: z.number().min(0),
  cached: z
    .number()
    .min(0)
    .optional()
    .describe("price of input read from a cache; default: the price of input"),
  output: z.number().min(0),
});
export type Price = z.infer<typeof Price>;

export const AgentCommand = z.strictObject({
  command: z.array(z.string().min(1)).min(1).describe("an ACP agent over stdio; never run in a shell"),
  title: z.string().optional(),
  model: z.string().optional(),
  env: z
    .array(z.string())
    .default([])
    .describe("names of environment variables it may see besides the usual ones"),
  howToInstall: z.string().optional(),
});
export type AgentCommand = z.infer<typeof AgentCommand>;

/** How long transcripts are kept, and how much of them. Lineage, results and receipts are always kept. */
export const Keep = z.strictObject({
  days: z.number().min(0).nullable().default(null).describe("older entries are removed; null keeps all"),
  megabytes: z
    .number()
    .min(0)
    .nullable()
    .default(null)
    .describe("above this size the entries of the oldest sessions are removed; null keeps all"),
});
export type Keep = z.infer<typeof Keep>;

/** Validates `kinfold.yaml`, `KINFOLD_*` variables and flags. */
export const Config = z.strictObject({
  host: z.string().default("127.0.0.1").describe("the address to listen on"),
  port: z.int().min(0).max(65_535).default(4680).describe("the port; 0 picks a free one"),
  allowHosts: z.array(z.string()).default([]).describe("further Host names to accept"),
  allowRemote: z.boolean().default(false).describe("listen beyond loopback without TLS"),
  tls: z.strictObject({ cert: z.string(), key: z.string() }).nullable().default(null),
  store: z.string().default("sqlite").describe("`sqlite`, or a postgres:// address"),
  node: z.string().default("local").describe("the name of this node"),
  agent: z.string().default("sim").describe("the agent of a root session that names none"),
  agents: z.record(z.string(), AgentCommand).default({}),
  roots: z.array(z.string()).default([]).describe("folders sessions may work in; empty allows any"),
  permission: Permission.default("workspace").describe("the mode of a root session that names none"),
  enforcement: z
    .enum(["strict", "mode"])
    .default("strict")
    .describe(
      "strict: a child's mode is enforced at least as strongly as its parent's; mode: only the mode counts",
    ),
  scopes: z
    .record(
      z.string().min(1).max(190),
      z.strictObject({
        visibility: z
          .enum(["isolated", "shared"])
          .default("isolated")
          .describe("isolated: sees only itself; shared: sees all that are shared"),
        keep: Keep.optional(),
      }),
    )
    .default({})
    .describe("scopes by name; one that is not named is isolated"),
  keep: Keep.extend({
    eventDays: z
      .number()
      .min(0)
      .nullable()
      .default(30)
      .describe(
        "the feed's events of a tree are removed so many days after its last activity, and never while a round is open; null keeps all",
      ),
  }).prefault({}),
  callback: CallbackPatch.default({}),
  triggers: z
    .strictObject({
      parentMs: z.int().min(1).default(300_000).describe("a parent's time before a person is asked as well"),
      defaultMs: z
        .int()
        .min(1)
        .default(600_000)
        .describe("the time before a stated default applies, or a permission is denied"),
    })
    .prefault({}),
  mcp: z
    .strictObject({
      aliases: z.boolean().default(false).describe("list create_session as well as spawn_session"),
    })
    .prefault({}),
  history: z
    .strictObject({
      enabled: z
        .boolean()
        .default(false)
        .describe("read what agents left on disk; `kinfold import` turns it on too"),
      exclude: z
        .array(z.string())
        .default([])
        .describe("project folders whose sessions are left out, as globs"),
      roots: z
        .partialRecord(z.enum(["claude-code", "codex", "opencode", "gemini"]), z.array(z.string()))
        .default({})
        .describe("further folders in which agents keep their sessions, by format"),
      scope: z
        .string()
        .min(1)
        .max(190)
        .nullable()
        .default(null)
        .describe("the scope of imported sessions; default: each session's git top level, else its folder"),
    })
    .prefault({}),
  onParentEnd: z.enum(["cancel", "detach"]).default("cancel"),
  inheritContext: z
    .boolean()
    .default(true)
    .describe("whether children may inherit context; false permits only `none`"),
  tailChars: z
    .int()
    .min(0)
    .max(100_000)
    .default(3_000)
    .describe("characters of a parent's newest transcript in what a child inherits"),
  limits: Limits.prefault({}),
  budget: z
    .strictObject({
      turnFloorUsd: z
        .number()
        .min(0)
        .default(0.05)
        .describe("the least USD reserved for a turn, as far as the budget allows"),
      turnFloorTokens: z
        .int()
        .min(0)
        .default(10_000)
        .describe("the least tokens reserved for a turn, as far as the budget allows"),
    })
    .prefault({}),
  prices: z
    .record(z.string(), Price)
    .default({})
    .describe("USD per million tokens by model, for agents that do not report their cost"),
  onLimit: z
    .enum(["park", "fail"])
    .default("park")
    .describe("what a session does at its vendor's usage limit: wait for the reset, or fail"),
  parkMs: z
    .int()
    .min(1)
    .default(21_600_000)
    .describe("the longest time a session stays parked before it tries again"),
  parkJitterMs: z.int().min(0).default(30_000).describe("jitter: sessions resume spread over this time"),
  retriesMax: z
    .int()
    .min(0)
    .max(20)
    .default(4)
    .describe(
      "how often a turn is tried again after its provider was overloaded, failed or cut the connection",
    ),
  retryMs: z
    .int()
    .min(1)
    .default(30_000)
    .describe("the pause before the first retry; each further one is twice as long"),
  silenceMs: z
    .int()
    .min(1)
    .default(600_000)
    .describe("how long a working agent may be silent before its parent and the person are notified"),
  silenceMaxMs: z
    .int()
    .min(0)
    .default(1_200_000)
    .describe("how long a working agent may be silent before its turn fails; 0: never"),
  idleMs: z.int().min(0).default(60_000).describe("how long a process lives after its round closed"),
  cancelGraceMs: z.int().min(0).default(2_000).describe("how long an agent may take to obey a cancel"),
  startMs: z.int().min(1).default(60_000).describe("how long an agent may take to start"),
  backgroundMs: z.int().min(0).default(600_000).describe("how long a round stays open for background work"),
  sandbox: z
    .enum(["auto", "bubblewrap", "namespaces", "guard"])
    .default("auto")
    .describe("what contains an agent's processes; auto takes the first that works here, in this order"),
  logLevel: z.enum(["debug", "info", "warn", "error"]).default("info"),
});
export type Config = z.infer<typeof Config>;
