import { z } from "zod";
import { Permission } from "./session.ts";

export const Steer = z.enum(["inject", "queue", "restart", "none"]);
export type Steer = z.infer<typeof Steer>;

/**
 * How a mode is enforced on an agent. `os`: by a sandbox; `agent`: by the vendor's own permission checks;
 * `asked`: the agent asks and we answer; `none`: not at all, so the agent is not started in that mode.
 */
export const Enforcement = z.enum(["os", "agent", "asked", "none"]);
export type Enforcement = z.infer<typeof Enforcement>;

/** The capabilities of an agent on a node, as the engine detected them. */
export const Agent = z.object({
  name: z.string(),
  title: z.string(),
  installed: z.boolean(),
  version: z.string().nullable(),
  signedIn: z.boolean().nullable().describe("null if that is unknown until it is started"),
  problem: z.string().nullable(),
  howToInstall: z.string().nullable(),
  howToSignIn: z.string().nullable().optional().describe("how to sign in, if a person must first"),
  uses: z
    .string()
    .nullable()
    .optional()
    .describe("the program that is started, and the adapter that speaks for it"),
  steer: Steer,
  load: z.boolean(),
  fork: z.boolean(),
  cost: z.enum(["usd", "tokens", "none"]),
  metersCalls: z
    .boolean()
    .optional()
    .describe("reports its usage after each model call, not only at the end of a turn"),
  metersCost: z
    .boolean()
    .optional()
    .describe("reports its cost after each model call; otherwise a price is needed to compute it"),
  questions: z.boolean(),
  enforces: z
    .record(Permission, Enforcement)
    .optional()
    .describe("how each mode is enforced; absent if it asks and we answer"),
  tools: z
    .array(z.string())
    .optional()
    .describe(
      "tools it can be restricted to, by the names that profiles use; absent if it cannot be restricted",
    ),
  servers: z
    .enum(["named", "ours"])
    .optional()
    .describe("MCP servers it can be restricted to: those named, or Kinfold's alone; absent if to neither"),
  models: z.array(z.string()),
  defaultModel: z.string().nullable(),
});
export type Agent = z.infer<typeof Agent>;
