import { z } from "zod";
import { Id } from "./id.ts";

export const EntryAuthor = z.enum(["person", "agent", "tool", "session", "daemon"]);
export type EntryAuthor = z.infer<typeof EntryAuthor>;

export const EntryKind = z.enum([
  "text",
  "thought",
  "toolCall",
  "toolResult",
  "plan",
  "notice",
  "callback",
  "trigger",
  "inherited",
]);
export type EntryKind = z.infer<typeof EntryKind>;

/** `text` is what people read. Tool calls, tool results and plans also use other fields. */
export const EntryBody = z.object({
  text: z.string(),
  tool: z.string().optional(),
  callId: z.string().optional(),
  input: z.unknown().optional(),
  ok: z.boolean().optional(),
  exitCode: z.number().nullable().optional(),
  command: z.string().optional(),
  paths: z.array(z.string()).optional(),
  steps: z.array(z.object({ title: z.string(), status: z.string() })).optional(),
  messageId: Id.optional(),
  more: z
    .object({ path: z.string(), chars: z.number(), leftOutChars: z.number() })
    .optional()
    .describe(
      "the rest of a message that is too long for an entry: its file, and what did not fit there either",
    ),
  open: z.boolean().optional().describe("still being written: the last entry of a session at work"),
  cut: z.boolean().optional().describe("its end was lost because the agent or the daemon stopped"),
});
export type EntryBody = z.infer<typeof EntryBody>;

/** One item of a transcript, with its true author. Never rewritten. */
export const Entry = z.object({
  sessionId: Id,
  index: z.number(),
  turnId: Id.nullable(),
  author: EntryAuthor,
  kind: EntryKind,
  body: EntryBody,
  isSubagent: z.boolean(),
  at: z.number(),
});
export type Entry = z.infer<typeof Entry>;
