import { z } from "zod";
import { SessionRef } from "./id.ts";
import { Budget } from "./profile.ts";
import { CallbackPatch, Effective, OnParentEnd, Permission, Session } from "./session.ts";

const Key = z.string().min(1).max(200).describe("an idempotency key");

export const Name = z
  .string()
  .trim()
  .min(1)
  .max(60)
  .regex(/^[\p{L}\p{N}][\p{L}\p{N} ._-]*$/u, "letters, digits, space, dot, dash and underscore")
  .describe("short label; the same name again returns the same child");

/** Settings that a root and a child have in common. */
const start = {
  prompt: z.string().describe("self-contained: what to do, where, what to report"),
  name: Name.optional(),
  title: z.string().max(200).optional(),
  agent: z.string().max(60).optional().describe("claude, codex, gemini, …; default yours"),
  model: z.string().max(120).optional(),
  profile: z.string().max(60).optional(),
  cwd: z.string().max(4096).optional(),
  permission: Permission.optional().describe("at most yours"),
  instructions: z.string().max(100_000).optional(),
  tools: z.array(z.string().max(120)).max(200).optional(),
  workspace: z.enum(["clone", "shared"]).optional(),
  inherit: z.enum(["none", "brief", "tail", "fork"]).optional(),
  check: z.string().max(4_000).optional().describe("command Kinfold runs at the end"),
  limits: Budget.optional(),
  node: z.string().max(60).optional(),
  callback: z.union([z.boolean(), CallbackPatch]).optional(),
  onParentEnd: OnParentEnd.optional(),
  onLimit: z.enum(["park", "fail"]).optional().describe("at its vendor's usage limit"),
  key: Key.optional(),
};

export const CreateInput = z.strictObject({
  ...start,
  scope: z
    .string()
    .min(1)
    .max(190)
    .optional()
    .describe("whose memory it is; default: its git top level, else its folder"),
  source: z.enum(["cli", "page", "http"]).default("http"),
});

export const SpawnInput = z.strictObject({ id: SessionRef.describe("the parent"), ...start });
export type SpawnInput = z.input<typeof SpawnInput>;

export const SpawnOutput = z.object({
  session: Session,
  status: z.enum(["queued", "running"]).describe("queued: it starts when a turn is free"),
  existing: z.boolean(),
  effective: Effective,
  inherited: z
    .object({
      bytes: z.number().describe("of what stands in its first prompt"),
      why: z.string().nullable().describe("why nothing was inherited, if that was not requested"),
    })
    .describe("the part of its parent's context that it was given"),
  childrenOpen: z.number(),
  childrenMax: z.number(),
  queuedBehind: z.number(),
  metering: z
    .enum(["call", "turn"])
    .describe("by how much it may exceed a budget: one model call, or one turn"),
  turnsMax: z.number().describe("turns that may run at once on its node"),
});
export type SpawnOutput = z.infer<typeof SpawnOutput>;

export const PromptInput = z.strictObject({
  id: SessionRef,
  prompt: z.string(),
  delivery: z.enum(["steer", "followUp"]).default("followUp"),
  key: Key.optional(),
});
export const PromptOutput = z.object({
  messageId: z.string(),
  sessionId: z.string(),
  position: z.number(),
  existing: z.boolean(),
});

export const TellInput = z.strictObject({
  id: SessionRef.describe("the child"),
  message: z.string(),
  deliverAs: z.enum(["steer", "followUp"]).default("steer"),
  restart: z
    .boolean()
    .default(false)
    .describe("interrupt the running turn if the agent takes messages in no other way"),
  key: Key.optional(),
});
export const TellOutput = z.object({
  messageId: z.string(),
  sessionId: z.string(),
  name: z.string().nullable(),
  delivered: z.enum(["injected", "queued", "restarted"]),
  why: z.string(),
  existing: z.boolean(),
});
export type TellOutput = z.infer<typeof TellOutput>;

export const CancelInput = z.strictObject({
  id: SessionRef,
  reason: z.string().max(400).optional(),
  turnOnly: z.boolean().default(false),
});
export const CancelOutput = z.object({
  sessionId: z.string(),
  name: z.string().nullable(),
  cancelled: z.boolean().describe("true if it was at work"),
  stopped: z.number().describe("sessions that were at work and were stopped"),
  closed: z
    .number()
    .describe(
      "sessions that were not at work and were closed: they take messages again once a person reopens them",
    ),
  stopping: z.array(z.string()).describe("sessions whose processes had not ended when this was answered"),
  taken: z
    .array(z.string())
    .describe("messages this reply carries; returned to the inbox if it does not arrive"),
  deliveryId: z.string().nullable(),
  left: z.array(z.object({ sessionId: z.string(), what: z.string(), pid: z.number().nullable() })),
});
export type CancelOutput = z.infer<typeof CancelOutput>;
