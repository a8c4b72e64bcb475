import { z } from "zod";
import { Entry } from "../entry.ts";
import { SessionRef } from "../id.ts";
import { InspectInput, InspectOutput, SearchInput, SearchOutput } from "../memory.ts";
import { Message } from "../message.ts";
import { FOUND, One, type OperationSpec, Page } from "./spec.ts";
import { Receipt } from "../receipt.ts";
import { Session, SessionStatus } from "../session.ts";
import { Trigger } from "../trigger.ts";
import { Turn } from "../turn.ts";

/** Sessions in tree order: each parent comes before its children. */
const Tree = z.object({ sessions: z.array(Session) });

export const READ = {
  list: {
    summary: "Sessions, newest first, filtered and paged.",
    input: z.strictObject({
      parent: SessionRef.optional(),
      root: SessionRef.optional(),
      status: SessionStatus.optional(),
      origin: z.enum(["managed", "attached", "imported"]).optional(),
      agent: z.string().max(60).optional(),
      unseen: z.stringbool().or(z.boolean()).optional(),
      ...Page,
    }),
    output: z.object({ sessions: z.array(Session), cursor: z.string().nullable() }),
    refusals: ["not_found", "ambiguous_reference", "invalid_input"],
    http: { method: "GET", path: "/api/sessions" },
    cli: "ls",
    sessions: true,
    right: "read",
  },
  get: {
    summary: "One session.",
    input: One,
    output: z.object({ session: Session }),
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id" },
    cli: "show",
    sessions: true,
    right: "read",
  },
  family: {
    summary: "The caller's family: parent, itself, children and below.",
    input: z.strictObject({ status: z.enum(["open", "ended", "all"]).default("all") }),
    output: z.object({
      you: z.string(),
      open: z.number(),
      unread: z.number(),
      sessions: z.array(Session),
      triggers: z.array(Trigger).describe("open triggers that wait for the caller"),
    }),
    refusals: ["not_found"],
    mcp: "list_sessions",
    sessions: true,
    aliases: { tree: "tree", cursor: "cursor" },
  },
  tree: {
    summary: "A session's whole tree, from its root, in tree order.",
    input: One,
    output: Tree,
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id/tree" },
    cli: "tree",
    sessions: true,
    right: "read",
  },
  children: {
    summary: "A session's children, oldest first.",
    input: One,
    output: Tree,
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id/children" },
    sessions: true,
    right: "read",
  },
  turns: {
    summary: "A session's turns, newest first.",
    input: z.strictObject({ id: SessionRef, ...Page }),
    output: z.object({ turns: z.array(Turn), cursor: z.string().nullable() }),
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id/turns" },
    sessions: true,
    right: "read",
  },
  turn: {
    summary: "One turn with its receipt.",
    input: z.strictObject({ id: z.string() }),
    output: z.object({ turn: Turn }),
    refusals: ["not_found", "forbidden"],
    http: { method: "GET", path: "/api/turns/:id" },
    sessions: true,
    right: "read",
  },
  entries: {
    summary: "A session's transcript, entry by entry: from the tail, or from any point.",
    input: z.strictObject({
      id: SessionRef,
      before: z.coerce.number().int().min(0).optional(),
      after: z.coerce.number().int().min(-1).optional(),
      limit: z.coerce.number().int().min(1).max(1000).default(100),
    }),
    output: z.object({
      entries: z.array(Entry).describe("fewer than requested if they are long"),
      first: z.number(),
      last: z
        .number()
        .describe("the last complete entry: `after` it comes the one that is still being written"),
      total: z.number().describe("without the one that is still being written"),
      keptFrom: z
        .number()
        .describe(
          "entries before this one were removed, as the scope keeps no more; what was inherited stays",
        ),
    }),
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id/entries" },
    sessions: true,
    right: "read",
  },
  transcript: {
    summary: "A session's transcript as text or Markdown.",
    input: z.strictObject({ id: SessionRef, format: z.enum(["text", "markdown"]).default("markdown") }),
    output: z.object({ text: z.string() }),
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id/transcript" },
    cli: "export",
    sessions: true,
    right: "read",
  },
  inbox: {
    summary: "A session's messages: those not yet taken, or all of them.",
    input: z.strictObject({ id: SessionRef, all: z.stringbool().or(z.boolean()).default(false) }),
    output: z.object({ messages: z.array(Message) }),
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id/inbox" },
    sessions: true,
    right: "read",
  },
  receipt: {
    summary: "What the daemon saw a session do in its last round.",
    input: One,
    output: z.object({ receipt: Receipt }),
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id/receipt" },
    cli: "show",
    sessions: true,
    right: "read",
  },
  inspect: {
    summary: "One session's result, transcript, receipt or inherited context, in parts.",
    input: InspectInput,
    output: InspectOutput,
    refusals: [...FOUND, "not_available"],
    http: { method: "GET", path: "/api/sessions/:id/inspect" },
    mcp: "get_session",
    leaf: true,
    sessions: true,
    right: "read",
    aliases: { id: "id", sessionKey: "id", turn: "turn", taskId: "turn", turnId: "turn" },
  },
  search: {
    summary: "Find words in the transcripts of the caller's scope.",
    input: SearchInput,
    output: SearchOutput,
    refusals: [...FOUND, "invalid_input"],
    http: { method: "POST", path: "/api/sessions/search" },
    mcp: "session_search",
    leaf: true,
    cli: "search",
    sessions: true,
    right: "read",
    aliases: { id: "id", sessionKey: "id", limit: "limit", sort: "sort" },
  },
  rollout: {
    summary: "Where a session's rollout file is.",
    input: One,
    output: z.object({ path: z.string(), exists: z.boolean() }),
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id/rollout" },
    sessions: false,
  },
} as const satisfies Record<string, OperationSpec>;
