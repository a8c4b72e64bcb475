import { z } from "zod";
import { Agent } from "./agent.ts";
import { CallbackPatch, Permission } from "./session.ts";

/** Zero is refused, because a session with a limit of zero could never start a turn. */
const LIMITS = {
  usd: z.number().positive(),
  tokens: z.int().positive(),
  turns: z.int().positive(),
  minutes: z.number().positive(),
};

/** The most a session may spend. A child's budget is never more than its parent has left. */
export const Budget = z.strictObject(LIMITS).partial();
export type Budget = z.infer<typeof Budget>;

export const BudgetPatch = z
  .strictObject({
    usd: LIMITS.usd.nullable(),
    tokens: LIMITS.tokens.nullable(),
    turns: LIMITS.turns.nullable(),
    minutes: LIMITS.minutes.nullable(),
  })
  .partial();
export type BudgetPatch = z.infer<typeof BudgetPatch>;

/** A named way to start a session, from a Markdown file. It can only narrow what the session may do. */
export const Profile = z.object({
  name: z.string(),
  description: z.string(),
  instructions: z.string(),
  agent: z.string().nullable(),
  model: z.string().nullable(),
  permission: Permission.nullable(),
  tools: z.array(z.string()).nullable(),
  disallowedTools: z.array(z.string()),
  mcp: z.array(z.string()).nullable(),
  limits: Budget,
  inherit: z.enum(["none", "brief", "tail", "fork"]).nullable(),
  callback: CallbackPatch,
  accepts: z.array(z.string()).describe("types that sessions of its scope may fire at it"),
  maxTurns: z.number().nullable(),
  from: z.string().describe("`built in`, or the file it comes from"),
});
export type Profile = z.infer<typeof Profile>;

export const ProfileProblem = z.object({
  names: z.array(z.string()).describe("the profiles that are refused because of it"),
  file: z.string(),
  line: z.number().nullable(),
  text: z.string(),
});
export type ProfileProblem = z.infer<typeof ProfileProblem>;

/** Returns `file:line`, or the file alone if no line is known. */
export function fileAndLine({ file, line }: ProfileProblem): string {
  return line === null ? file : `${file}:${line}`;
}

const List = z.union([z.string(), z.array(z.string())]);
/** The front matter of a profile file; compatible with Claude Code's agent files. */
export const ProfileHead = z.strictObject({
  name: z.string().regex(/^[A-Za-z][A-Za-z0-9_-]*$/, "letters, digits, dash and underscore"),
  description: z.string().min(1),
  agent: z.string().optional(),
  model: z.string().optional(),
  permission: Permission.optional(),
  permissionMode: z.enum(["plan", "default", "acceptEdits", "bypassPermissions"]).optional(),
  tools: List.optional(),
  disallowedTools: List.optional(),
  mcp: List.optional(),
  limits: Budget.optional(),
  maxTurns: z.int().min(1).optional(),
  inherit: z.enum(["none", "brief", "tail", "fork"]).optional(),
  callback: CallbackPatch.optional(),
  accepts: List.optional(),
  color: z.string().optional(),
});
export type ProfileHead = z.infer<typeof ProfileHead>;

export const Models = z.object({
  agents: z.array(Agent),
  profiles: z.array(z.object({ name: z.string(), description: z.string(), from: z.string() })),
  problems: z.array(ProfileProblem).describe("profile files that cannot be used"),
});
export type Models = z.infer<typeof Models>;
