import { z } from "zod";
import { Agent } from "./agent.ts";
import { AttachInput, AttachOutput } from "./attach.ts";
import { Entry } from "./entry.ts";
import { SessionRef } from "./id.ts";
import {
  CheckpointInput,
  CheckpointOutput,
  InspectInput,
  InspectOutput,
  SearchInput,
  SearchOutput,
  SubagentInput,
  SubagentOutput,
} from "./memory.ts";
import { Message } from "./message.ts";
import { BudgetPatch, Models } from "./profile.ts";
import { Receipt } from "./receipt.ts";
import type { RefusalCode } from "./refusal.ts";
import { CallbackPatch, Session, SessionStatus } from "./session.ts";
import {
  CancelInput,
  CancelOutput,
  CreateInput,
  PromptInput,
  PromptOutput,
  SpawnInput,
  SpawnOutput,
  TellInput,
  TellOutput,
} from "./spawn.ts";
import { Token, TokenRight } from "./token.ts";
import {
  AskInput,
  Asked,
  EscalateInput,
  FireInput,
  FireOutput,
  PlanInput,
  RespondInput,
  RespondOutput,
  Trigger,
} from "./trigger.ts";
import { Turn } from "./turn.ts";
import { WaitChildrenInput, WaitChildrenOutput, WaitInput, WaitOutput } from "./wait.ts";

/** One thing a caller may ask, defined once, offered on every surface that it names. */
export interface OperationSpec {
  readonly summary: string;
  readonly input: z.ZodObject;
  readonly output: z.ZodType;
  readonly refusals: readonly RefusalCode[];
  /** Absent where only an agent may ask. A `:id` in the path is the input's field `id`. */
  readonly http?: { readonly method: "GET" | "POST" | "PATCH"; readonly path: string };
  /** The name of the tool, where an agent may ask. */
  readonly mcp?: string;
  /** The CLI command that asks this. */
  readonly cli?: string;
  /** A session's own token may ask this over HTTP as well. */
  readonly sessions: boolean;
}

const One = z.strictObject({ id: SessionRef });
const Page = {
  cursor: z.string().max(200).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
};
const found = ["not_found", "ambiguous_reference", "forbidden"] as const;
const spawning = [
  "empty_prompt",
  "prompt_too_large",
  "unknown_agent",
  "agent_not_installed",
  "unknown_profile",
  "cwd_not_found",
  "cwd_not_allowed",
  "bad_template",
  "key_reused",
  "cannot_meter",
] as const;

/** A family as one reads it: sessions in tree order, each with its depth below the first. */
const Tree = z.object({ sessions: z.array(Session) });

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
  counts: z.object({
    running: z.number(),
    waiting: z.number(),
    open: z.number(),
    unseen: z.number(),
    sessions: z.number(),
    families: z.number(),
  }),
  usageToday: z.object({ tokens: z.number(), usd: z.number().nullable() }),
});
export type Health = z.infer<typeof Health>;

export const OPERATIONS = {
  health: {
    summary: "Whether the daemon works, which one it is, and how much is going on.",
    input: z.strictObject({}),
    output: Health,
    refusals: [],
    http: { method: "GET", path: "/api/health" },
    cli: "kinfold",
    sessions: true,
  },
  agents: {
    summary: "The agents on this node: installed, version, what each can do.",
    input: z.strictObject({}),
    output: z.object({ agents: z.array(Agent) }),
    refusals: [],
    http: { method: "GET", path: "/api/agents" },
    cli: "doctor",
    sessions: true,
  },
  create: {
    summary: "Start a root session with its first prompt.",
    input: CreateInput,
    output: SpawnOutput,
    refusals: spawning,
    http: { method: "POST", path: "/api/sessions" },
    cli: "spawn",
    sessions: false,
  },
  attach: {
    summary: "Make a session for a client in somebody's own terminal, with a token of its own.",
    input: AttachInput,
    output: AttachOutput,
    refusals: ["cwd_not_found", "cwd_not_allowed"],
    http: { method: "POST", path: "/api/sessions/attach" },
    cli: "mcp",
    sessions: false,
  },
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
  },
  get: {
    summary: "One session.",
    input: One,
    output: z.object({ session: Session }),
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id" },
    cli: "show",
    sessions: true,
  },
  update: {
    summary: "Change a session's title, its callback configuration, its budget or whether it was seen.",
    input: z.strictObject({
      id: SessionRef,
      title: z.string().max(200).nullable().optional(),
      callback: CallbackPatch.optional(),
      limits: BudgetPatch.optional().describe("null takes a limit away"),
      seen: z.boolean().optional(),
    }),
    output: z.object({ session: Session }),
    refusals: [...found, "bad_template"],
    http: { method: "PATCH", path: "/api/sessions/:id" },
    sessions: false,
  },
  prompt: {
    summary: "Send a prompt to a session; it is taken when the session is idle.",
    input: PromptInput,
    output: PromptOutput,
    refusals: [...found, "session_ended", "empty_prompt", "prompt_too_large", "key_reused"],
    http: { method: "POST", path: "/api/sessions/:id/prompt" },
    sessions: false,
  },
  spawn: {
    summary: "Spawn a child session under a parent; its result comes back as a callback.",
    input: SpawnInput,
    output: SpawnOutput,
    refusals: [
      ...found,
      ...spawning,
      "parent_ended",
      "permission_too_wide",
      "limit_depth",
      "limit_children",
      "limit_sessions",
      "limit_rate",
      "limit_spawns",
      "over_budget",
      "not_a_child",
    ],
    http: { method: "POST", path: "/api/sessions/:id/spawn" },
    mcp: "spawn_session",
    cli: "spawn",
    sessions: true,
  },
  tell: {
    summary: "Send a message to a child: into its running turn where its agent can, else after it.",
    input: TellInput,
    output: TellOutput,
    refusals: [
      ...found,
      "session_ended",
      "empty_prompt",
      "prompt_too_large",
      "key_reused",
      "not_a_child",
      "waits_on_trigger",
    ],
    http: { method: "POST", path: "/api/sessions/:id/tell" },
    mcp: "tell_child",
    cli: "tell",
    sessions: true,
  },
  cancel: {
    summary: "Stop a session and all below it, or only its running turn.",
    input: CancelInput,
    output: CancelOutput,
    refusals: [...found, "not_a_child"],
    http: { method: "POST", path: "/api/sessions/:id/cancel" },
    mcp: "cancel_session",
    cli: "cancel",
    sessions: true,
  },
  detach: {
    summary: "Let a child go on without its parent: no callback, no cancel from above.",
    input: One,
    output: z.object({ session: Session }),
    refusals: [...found, "session_ended"],
    http: { method: "POST", path: "/api/sessions/:id/detach" },
    sessions: false,
  },
  wait: {
    summary: "Wait until a session has finished its round; reads, takes nothing.",
    input: WaitInput,
    output: WaitOutput,
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/wait" },
    cli: "wait",
    sessions: true,
  },
  waitChildren: {
    summary: "Wait for children; the reply that carries an end takes its callback.",
    input: WaitChildrenInput,
    output: WaitChildrenOutput,
    refusals: [...found, "wait_on_ancestor", "not_a_child", "did_not_complete", "child_failed"],
    mcp: "wait_session",
    sessions: true,
  },
  family: {
    summary: "The caller's family: parent, itself, children and below.",
    input: z.strictObject({ status: z.enum(["open", "ended", "all"]).default("all") }),
    output: z.object({
      you: z.string(),
      open: z.number(),
      unread: z.number(),
      sessions: z.array(Session),
      triggers: z.array(Trigger).describe("open ones that wait for the caller"),
    }),
    refusals: ["not_found"],
    mcp: "list_sessions",
    sessions: true,
  },
  tree: {
    summary: "A session's whole tree, from its root, in tree order.",
    input: One,
    output: Tree,
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/tree" },
    cli: "tree",
    sessions: true,
  },
  children: {
    summary: "A session's children, oldest first.",
    input: One,
    output: Tree,
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/children" },
    sessions: true,
  },
  turns: {
    summary: "A session's turns, newest first.",
    input: z.strictObject({ id: SessionRef, ...Page }),
    output: z.object({ turns: z.array(Turn), cursor: z.string().nullable() }),
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/turns" },
    sessions: true,
  },
  turn: {
    summary: "One turn with its receipt.",
    input: z.strictObject({ id: z.string() }),
    output: z.object({ turn: Turn }),
    refusals: ["not_found", "forbidden"],
    http: { method: "GET", path: "/api/turns/:id" },
    sessions: true,
  },
  entries: {
    summary: "A session's transcript, entry by entry: from the tail, or from any point.",
    input: z.strictObject({
      id: SessionRef,
      before: z.coerce.number().int().min(0).optional(),
      after: z.coerce.number().int().min(-1).optional(),
      limit: z.coerce.number().int().min(1).max(1000).default(100),
    }),
    output: z.object({ entries: z.array(Entry), first: z.number(), last: z.number(), total: z.number() }),
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/entries" },
    sessions: true,
  },
  transcript: {
    summary: "A session's transcript as text or Markdown.",
    input: z.strictObject({ id: SessionRef, format: z.enum(["text", "markdown"]).default("markdown") }),
    output: z.object({ text: z.string() }),
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/transcript" },
    cli: "export",
    sessions: true,
  },
  inbox: {
    summary: "A session's messages: those not yet taken, or all of them.",
    input: z.strictObject({ id: SessionRef, all: z.stringbool().or(z.boolean()).default(false) }),
    output: z.object({ messages: z.array(Message) }),
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/inbox" },
    sessions: true,
  },
  triggers: {
    summary: "The triggers a session has fired.",
    input: One,
    output: z.object({ triggers: z.array(Trigger) }),
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/triggers" },
    sessions: true,
  },
  ask: {
    summary: "Ask the parent, or through it the person, and wait for the answer.",
    input: AskInput,
    output: Asked,
    refusals: ["forbidden"],
    mcp: "ask_user_question",
    sessions: true,
  },
  planReview: {
    summary: "Submit a plan to the parent or the person and wait for approval.",
    input: PlanInput,
    output: Asked,
    refusals: ["forbidden"],
    mcp: "plan_review",
    sessions: true,
  },
  respond: {
    summary: "Answer a trigger: a question, a plan, a permission, or a child's end.",
    input: RespondInput,
    output: RespondOutput,
    refusals: [
      "unknown_trigger",
      "already_answered",
      "bad_answer",
      "may_not_allow",
      "not_a_child",
      "session_ended",
    ],
    http: { method: "POST", path: "/api/triggers/:id/respond" },
    mcp: "respond_to_trigger",
    cli: "answer",
    sessions: true,
  },
  escalate: {
    summary: "Pass a trigger on to the person; answering either answers both.",
    input: EscalateInput,
    output: RespondOutput,
    refusals: ["unknown_trigger", "already_answered", "bad_answer", "not_a_child"],
    http: { method: "POST", path: "/api/triggers/:id/escalate" },
    mcp: "escalate_trigger",
    sessions: true,
  },
  fire: {
    summary: "Notify a session of something without waiting.",
    input: FireInput,
    output: FireOutput,
    refusals: [...found, "invalid_input", "prompt_too_large", "session_ended", "not_a_child", "key_reused"],
    http: { method: "POST", path: "/api/sessions/:id/triggers" },
    mcp: "fire_trigger",
    sessions: true,
  },
  listTriggers: {
    summary: "Open triggers, nearest deadline first: those for the person, or all.",
    input: z.strictObject({ for: z.enum(["person", "all"]).default("person") }),
    output: z.object({ triggers: z.array(Trigger.extend({ sessionName: z.string().nullable() })) }),
    refusals: [],
    http: { method: "GET", path: "/api/triggers" },
    cli: "inbox",
    sessions: false,
  },
  receipt: {
    summary: "What the daemon saw a session do in its last round.",
    input: One,
    output: z.object({ receipt: Receipt }),
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/receipt" },
    cli: "show",
    sessions: true,
  },
  subagent: {
    summary: "Run short tasks in children, in parallel or as a chain, and wait for their answers.",
    input: SubagentInput,
    output: SubagentOutput,
    refusals: ["forbidden", "empty_prompt", "unknown_profile", "unknown_agent", "limit_children"],
    mcp: "subagent",
    sessions: true,
  },
  inspect: {
    summary: "One session's result, transcript or receipt, in parts.",
    input: InspectInput,
    output: InspectOutput,
    refusals: [...found, "not_available"],
    http: { method: "GET", path: "/api/sessions/:id/inspect" },
    mcp: "get_session",
    sessions: true,
  },
  search: {
    summary: "Find words in the transcripts of the caller's scope.",
    input: SearchInput,
    output: SearchOutput,
    refusals: [...found, "invalid_input"],
    http: { method: "POST", path: "/api/sessions/search" },
    mcp: "session_search",
    cli: "search",
    sessions: true,
  },
  checkpoint: {
    summary: "Save a summary, focal entities and constraints of a session.",
    input: CheckpointInput,
    output: CheckpointOutput,
    refusals: [...found, "session_ended"],
    http: { method: "POST", path: "/api/sessions/:id/checkpoints" },
    mcp: "checkpoint",
    sessions: true,
  },
  models: {
    summary: "Installed agents, their models, and the profiles there are.",
    input: z.strictObject({ agent: z.string().max(60).optional() }),
    output: Models,
    refusals: ["unknown_agent"],
    http: { method: "GET", path: "/api/models" },
    mcp: "list_models",
    cli: "agents",
    sessions: true,
  },
  createToken: {
    summary: "Make an API key with a reach and an expiry; the secret is in this answer only.",
    input: z.strictObject({
      name: z.string().trim().min(1).max(60),
      can: z.array(TokenRight).min(1).default(["read"]),
      scope: z.string().min(1).max(60).nullable().default(null),
      expiresInMs: z.number().int().min(1_000).nullable().default(null),
    }),
    output: z.object({ token: Token, secret: z.string() }),
    refusals: [],
    http: { method: "POST", path: "/api/tokens" },
    cli: "tokens",
    sessions: false,
  },
  listTokens: {
    summary: "The API keys there are, without their secrets.",
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
  rollout: {
    summary: "Where a session's rollout file is.",
    input: One,
    output: z.object({ path: z.string(), exists: z.boolean() }),
    refusals: found,
    http: { method: "GET", path: "/api/sessions/:id/rollout" },
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

export type OperationName = keyof typeof OPERATIONS;
export type InputOf<N extends OperationName> = z.output<(typeof OPERATIONS)[N]["input"]>;
export type AskOf<N extends OperationName> = z.input<(typeof OPERATIONS)[N]["input"]>;
export type OutputOf<N extends OperationName> = z.output<(typeof OPERATIONS)[N]["output"]>;
