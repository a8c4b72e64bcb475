import { z } from "zod";
import { Id, SessionRef } from "./id.ts";

export const TriggerStatus = z.enum(["open", "answered", "defaulted", "withdrawn"]);
export type TriggerStatus = z.infer<typeof TriggerStatus>;

export { BLOCKING_TYPES } from "./blocking-type.ts";

export const Question = z.strictObject({
  id: z.string().max(60).optional(),
  question: z.string().trim().min(1).max(4_000),
  header: z.string().max(60).optional(),
  options: z.array(z.string().min(1).max(400)).max(20).optional(),
  type: z.enum(["radio", "checkbox", "ranked"]).optional(),
});

export const PlanStep = z.union([
  z.string().min(1).max(2_000),
  z.strictObject({ title: z.string().min(1).max(400), detail: z.string().max(4_000).optional() }),
]);

export const Answer = z.object({
  by: z.string().describe("who answered, in words"),
  callerId: z.string().nullable(),
  action: z.string().nullable(),
  response: z.string().nullable(),
  answers: z.record(z.string(), z.unknown()).nullable(),
  at: z.number(),
});
export type Answer = z.infer<typeof Answer>;

/** A question or report from a session or from outside; it may need an answer. */
export const Trigger = z.object({
  id: Id,
  shortId: z.string(),
  sessionId: Id.describe("the session it comes from, or is fired at from outside"),
  toId: Id.nullable().describe("the session it goes to; null if only the person is asked"),
  toPerson: z.boolean().describe("a person is asked as well"),
  type: z.string(),
  payload: z.record(z.string(), z.unknown()),
  actions: z.array(z.string()),
  status: TriggerStatus,
  round: z.number(),
  deadline: z.object({ personAt: z.number().nullable(), defaultAt: z.number().nullable() }),
  default: z.string().nullable(),
  originalId: Id.nullable().describe("for an escalation: the trigger that was escalated"),
  context: z.string().nullable(),
  answer: Answer.nullable(),
  seenByAgentAt: z.number().nullable(),
  createdAt: z.number(),
  closedAt: z.number().nullable(),
});
export type Trigger = z.infer<typeof Trigger>;

const Cap = z.number().int().min(0).default(45_000).describe("the longest the caller's client allows");

/** The answer to a question, or `pending`: the answer will arrive as a message. */
export const Asked = z.object({
  triggerId: z.string(),
  shortId: z.string(),
  status: z.enum(["answered", "defaulted", "withdrawn", "pending"]),
  by: z.string().nullable(),
  action: z.string().nullable(),
  response: z.string().nullable(),
  answers: z.record(z.string(), z.unknown()).nullable(),
  asked: z.string().describe("who was asked, in words"),
  deliveryId: z.string().nullable(),
  taken: z
    .array(z.string())
    .describe("messages this reply carries; returned to the inbox if it does not arrive"),
});
export type Asked = z.infer<typeof Asked>;

export const AskInput = z.strictObject({
  questions: z.array(Question).min(1).max(10),
  default: z.string().max(2_000).optional().describe("what applies without an answer in time"),
  timeoutMs: z.number().int().min(0).max(86_400_000).optional(),
  capMs: Cap,
});

export const PlanInput = z.strictObject({
  title: z.string().trim().min(1).max(400),
  steps: z.array(PlanStep).min(1).max(50),
  description: z.string().max(8_000).optional(),
  capMs: Cap,
});

export const TriggerRef = z.string().trim().min(4).max(60).describe("the ID of its <!-- trigger:ID --> line");

export const RespondInput = z.strictObject({
  id: TriggerRef,
  response: z.string().max(100_000).optional(),
  action: z
    .enum(["approve", "edit", "cancel", "allow", "deny", "followUp", "ack"])
    .optional()
    .describe("plan: approve, edit, cancel; permission: allow, deny"),
  answers: z.record(z.string(), z.unknown()).optional(),
  key: z.string().min(1).max(200).optional(),
});

export const RespondOutput = z.object({
  trigger: Trigger,
  what: z.string().describe("what happened to it, one sentence"),
});
export type RespondOutput = z.infer<typeof RespondOutput>;

export const EscalateInput = z.strictObject({ id: TriggerRef, context: z.string().max(8_000).optional() });

export const FireInput = z.strictObject({
  id: SessionRef.describe('id, name or "parent"'),
  type: z
    .string()
    .trim()
    .min(1)
    .max(60)
    .regex(/^[A-Za-z][A-Za-z0-9_.:-]*$/, "a word: letters, digits, dot, colon, dash, underscore"),
  payload: z.record(z.string(), z.unknown()),
  deliverAs: z.enum(["steer", "followUp"]).default("steer"),
  source: z.string().max(120).optional(),
  key: z.string().min(1).max(200).optional(),
});
export const FireOutput = z.object({
  triggerId: z.string(),
  sessionId: z.string(),
  name: z.string().nullable(),
  delivered: z.enum(["injected", "queued", "restarted"]),
  existing: z.boolean(),
});
export type FireOutput = z.infer<typeof FireOutput>;
