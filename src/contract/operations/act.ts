import { z } from "zod";
import { AttachInput, AttachOutput } from "../attach.ts";
import { SessionRef } from "../id.ts";
import { CheckpointInput, CheckpointOutput, SubagentInput, SubagentOutput } from "../memory.ts";
import { FOUND, One, type OperationSpec } from "./spec.ts";
import { BudgetPatch } from "../profile.ts";
import { CallbackPatch, Session } from "../session.ts";
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
} from "../spawn.ts";
import { WaitChildrenInput, WaitChildrenOutput, WaitInput, WaitOutput } from "../wait.ts";

const spawning = [
  "empty_prompt",
  "prompt_too_large",
  "unknown_agent",
  "agent_not_installed",
  "unknown_profile",
  "unknown_model",
  "cwd_not_found",
  "cwd_not_allowed",
  "bad_project_file",
  "bad_template",
  "key_reused",
  "cannot_meter",
] as const;

/** A message that opens a finished session's round needs a place. */
const PLACES = ["limit_children", "limit_sessions"] as const;
/** What a message to a session may meet. */
const SENDING = [
  ...FOUND,
  ...PLACES,
  "session_ended",
  "empty_prompt",
  "prompt_too_large",
  "key_reused",
  "not_available",
] as const;

/** What changes a session or waits for it. */
export const ACT = {
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
    refusals: [...FOUND, "bad_template", "not_available"],
    http: { method: "PATCH", path: "/api/sessions/:id" },
    sessions: false,
  },
  prompt: {
    summary: "Send a prompt to a session; it is taken when the session is idle.",
    input: PromptInput,
    output: PromptOutput,
    refusals: SENDING,
    http: { method: "POST", path: "/api/sessions/:id/prompt" },
    sessions: false,
  },
  spawn: {
    summary: "Spawn a child session under a parent; its result comes back as a callback.",
    input: SpawnInput,
    output: SpawnOutput,
    refusals: [
      ...FOUND,
      ...spawning,
      "parent_ended",
      "permission_too_wide",
      "limit_depth",
      "cannot_fork",
      "inherit_off",
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
    refusals: [...SENDING, "not_a_child", "waits_on_trigger"],
    http: { method: "POST", path: "/api/sessions/:id/tell" },
    mcp: "tell_child",
    cli: "tell",
    sessions: true,
  },
  cancel: {
    summary: "Stop a session and all below it and close them, or stop only its running turn.",
    input: CancelInput,
    output: CancelOutput,
    refusals: [...FOUND, "not_a_child", "not_available"],
    http: { method: "POST", path: "/api/sessions/:id/cancel" },
    mcp: "cancel_session",
    cli: "cancel",
    sessions: true,
  },
  reopen: {
    summary: "Let a cancelled or acknowledged session take messages again; those below it stay ended.",
    input: One,
    output: z.object({ session: Session }),
    refusals: [...FOUND, "not_available"],
    http: { method: "POST", path: "/api/sessions/:id/reopen" },
    cli: "reopen",
    sessions: false,
  },
  detach: {
    summary: "Let a child go on without its parent: no callback, no cancel from above.",
    input: One,
    output: z.object({ session: Session }),
    refusals: [...FOUND, "session_ended"],
    http: { method: "POST", path: "/api/sessions/:id/detach" },
    sessions: false,
  },
  wait: {
    summary: "Wait until a session has finished its round; reads, takes nothing.",
    input: WaitInput,
    output: WaitOutput,
    refusals: FOUND,
    http: { method: "GET", path: "/api/sessions/:id/wait" },
    cli: "wait",
    sessions: true,
  },
  waitChildren: {
    summary: "Wait for children; the reply that carries an end takes its callback.",
    input: WaitChildrenInput,
    output: WaitChildrenOutput,
    refusals: [...FOUND, "wait_on_ancestor", "not_a_child", "did_not_complete", "child_failed"],
    mcp: "wait_session",
    sessions: true,
  },
  subagent: {
    summary: "Run short tasks in children, in parallel or as a chain, and wait for their answers.",
    input: SubagentInput,
    output: SubagentOutput,
    refusals: [
      "forbidden",
      "empty_prompt",
      "unknown_profile",
      "unknown_agent",
      "unknown_model",
      "limit_children",
    ],
    mcp: "subagent",
    sessions: true,
  },
  checkpoint: {
    summary: "Save a summary, focal entities and constraints of a session.",
    input: CheckpointInput,
    output: CheckpointOutput,
    refusals: [...FOUND, "session_ended", "not_a_child"],
    http: { method: "POST", path: "/api/sessions/:id/checkpoints" },
    mcp: "checkpoint",
    sessions: true,
  },
} as const satisfies Record<string, OperationSpec>;
