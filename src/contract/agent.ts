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

/** What an agent on a node can do, as the engine has detected. */
export const Agent = z.object({
  name: z.string(),
  title: z.string(),
  installed: z.boolean(),
  version: z.string().nullable(),
  signedIn: z.boolean().nullable().describe("null where it cannot be known without starting it"),
  problem: z.string().nullable(),
  howToInstall: z.string().nullable(),
  howToSignIn: z.string().nullable().optional().describe("where somebody must sign in first"),
  uses: z.string().nullable().optional().describe("the program that is started, and what speaks for it"),
  steer: Steer,
  load: z.boolean(),
  fork: z.boolean(),
  cost: z.enum(["usd", "tokens", "none"]),
  metersCalls: z
    .boolean()
    .optional()
    .describe("says what it has used after each model call, not only at the end of a turn"),
  metersCost: z
    .boolean()
    .optional()
    .describe("says what it has cost after each model call too; otherwise a price is needed to know it then"),
  questions: z.boolean(),
  enforces: z
    .record(Permission, Enforcement)
    .optional()
    .describe("what holds it to each mode; absent where it asks and is answered"),
  tools: z
    .array(z.string())
    .optional()
    .describe("tools it can be held to, as profiles call them; absent where it cannot be held to any"),
  servers: z
    .enum(["named", "ours"])
    .optional()
    .describe("MCP servers it can be held to: those named, or Kinfold's alone; absent where to neither"),
  models: z.array(z.string()),
  defaultModel: z.string().nullable(),
});
export type Agent = z.infer<typeof Agent>;
