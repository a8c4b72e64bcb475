import type { AgentUpdateLike } from "../domain/receipt.ts";
import type { ProcessIdentity, RememberedProcess } from "../system/process.ts";
import type { Agent, Enforcement as Level, Permission, Usage } from "../contract/index.ts";

/**
 * Code that talks to one kind of agent: stateless translation and nothing else.
 *
 * An implementer must never throw or reject where a result type exists, never write to the
 * store, never decide what a failure means for the session, and never leave a process behind
 * once `stop` has resolved. A caller may rely on updates arriving in order, on every update of
 * a prompt arriving before that prompt's end, and on `exited` resolving exactly once.
 */
export interface Driver {
  readonly name: string;
  /** How a person signs in; completes "to sign in, …". */
  readonly howToSignIn?: string;
  /** Reports what this agent can do on this machine. Fast enough for every start. Opens no agent session. */
  probe(): Promise<Agent>;
  /** Starts the agent's process and opens a new session, or the one in `load`. Never rejects. */
  open(request: OpenRequest): Promise<OpenResult>;
}

export type Enforcement = Readonly<Record<Permission, Level>>;

export interface OpenRequest {
  readonly sessionId: string;
  /** Set as KINFOLD_LEASE in the environment to mark every process of this agent; not a secret. */
  readonly leaseId: string;
  readonly cwd: string;
  readonly model: string | null;
  readonly permission: Permission;
  /** The agent's built-in tools that the session may use, by their names in profiles; null allows all. */
  readonly tools: readonly string[] | null;
  readonly notTools: readonly string[];
  /** The person's MCP servers that the session may use; null allows all. */
  readonly servers: readonly string[] | null;
  /** Kinfold's MCP server. Its token is passed by protocol or environment, never in arguments. */
  readonly mcp: { readonly url: string; readonly token: string } | null;
  /** The agent's id of the session to load and replay; null opens a new one. */
  readonly load: string | null;
  /** The agent's id of the session whose conversation is copied into the new one. */
  readonly fork?: string | null;
  readonly startMs: number;
  readonly onUpdate: (update: AgentUpdate) => void;
  /** Called with a request that the agent waits for. The driver sends the result to the agent. */
  readonly onRequest: (request: AgentRequest) => Promise<AgentAnswer>;
  /**
   * The driver must start each of its processes through this function. If the session still needs an agent,
   * the function calls the synchronous `start` under the session's lock; else it resolves to false. After
   * false or a rejection, the driver must leave no process behind.
   */
  readonly admitProcess: AdmitProcess;
  /**
   * Called whenever the set of living descendants without the `KINFOLD_LEASE` marker changes. After a crash,
   * only this list shows that they belong to the agent. Not called for an agent in a namespace, because the
   * namespace ends them together with the agent.
   */
  readonly onUnmarked?: (processes: readonly RememberedProcess[]) => void;
}

/** `start` returns null if no process could be created. A second `start` returns the same process. */
export type AdmitProcess = (start: () => ProcessIdentity | null) => Promise<boolean>;

export type OpenResult =
  | { readonly ok: true; readonly handle: AgentHandle }
  | { readonly ok: false; readonly reason: OpenFailure; readonly message: string };

/**
 * `unwanted`: the session was stopped before its process started. With the other reasons below, the process
 * works. `no_load`: the agent declares that it cannot load a session. `no_session`: it can, and answers that
 * it has no such session. `load_failed`, `fork_failed`: the old conversation could not be loaded or copied for
 * another reason, or the agent did not answer.
 */
export type OpenFailure =
  | "not_installed"
  | "unwanted"
  | "exited"
  | "timeout"
  | "protocol"
  | "not_signed_in"
  | "no_load"
  | "no_session"
  | "load_failed"
  | "fork_failed";

export interface AgentHandle {
  readonly agentSessionId: string;
  readonly agentVersion: string | null;
  readonly model: string | null;
  /** The replay of a load; null for a new session or a fork. */
  readonly replay: Replay | null;
  /** Resolves when the agent has answered the prompt or no longer can. Never rejects. */
  prompt(text: string): Promise<PromptEnd>;
  /** Sends a message into the running turn. `lost`: the agent ended without a reply. */
  steer(text: string): Promise<"injected" | "queued" | "restarted" | "refused" | "lost">;
  /** Asks the agent to cancel its running prompt, which then ends. */
  cancel(): void;
  /** Cancels if needed, waits at most `graceMs` for an orderly end, then kills the whole process tree. */
  stop(graceMs: number): Promise<StopReport>;
  /** Whether work continues outside a prompt: a descendant that started at or after `since` is running. */
  background(since: number): Promise<boolean>;
  descendants(): Promise<ProcessIdentity[]>;
  readonly exited: Promise<AgentExit>;
}

export interface AgentExit {
  readonly code: number | null;
  readonly signal: string | null;
  /** The end of the agent's standard error, to explain the exit. */
  readonly stderrTail: string;
}

export interface StopReport {
  readonly left: readonly ProcessIdentity[];
}

/** A loaded conversation. Only `userTexts` and `toolResults` prove that a delivery arrived. */
export interface Replay {
  readonly userTexts: readonly string[];
  /** Only results of Kinfold's tools. */
  readonly toolResults: readonly string[];
  /** For each user text, how many tools the agent called before the next user text. */
  readonly toolCalls: readonly number[];
  /** The agent's last message after the last user text, if there is one. */
  readonly lastText: string | null;
}

export interface PromptEnd {
  readonly stopReason:
    | "end_turn"
    | "max_tokens"
    | "max_turn_requests"
    | "refusal"
    | "cancelled"
    | "error"
    | "exited";
  /** The agent answered with a stop reason or an error, which proves that it received the prompt. */
  readonly isAnswered: boolean;
  /** One line for a person; null if the stop reason is enough. */
  readonly error: string | null;
  /** Set if the process ended before it answered. */
  readonly exit: AgentExit | null;
  /** What this prompt used; null if the agent did not report it. */
  readonly usage: Usage | null;
  /** `usage` counts only the last of several model calls. */
  readonly isUsagePartial?: boolean;
  /** The provider's HTTP status, if the agent reports it separately; only with `error`. */
  readonly errorStatus?: number | null;
  /** When the vendor's usage limit ends, in milliseconds since 1970; only with `error`. */
  readonly limitedUntil?: number | null;
}

/** An update from which the receipt of a turn is made. */
type Observed<K extends string> = Extract<AgentUpdateLike, { readonly kind: K }>;

export type AgentUpdate =
  | { readonly kind: "fragment"; readonly what: "text" | "thought"; readonly text: string }
  /** A complete message. If it is very long, `text` has only its beginning and `chars` is the full length. */
  | { readonly kind: "text"; readonly text: string; readonly chars?: number }
  | { readonly kind: "thought"; readonly text: string; readonly chars?: number }
  | (Observed<"toolCall"> & { readonly input: unknown })
  | (Observed<"toolResult"> & {
      readonly text: string;
      /** True for the result of a Kinfold tool. A delivery id in its text has then reached the agent. */
      readonly ours: boolean;
    })
  | Observed<"plan">
  /** The agent has replaced its conversation so far with this summary. */
  | { readonly kind: "compaction"; readonly summary: string }
  /** What the running prompt has used so far; the prompt's end reports the final numbers. */
  | { readonly kind: "usage"; readonly usage: Usage }
  /** The agent's model has answered, so the agent's session file may now contain this model call's usage. */
  | { readonly kind: "modelCall" }
  /** The agent retries a model call after an error, so the model may be unreachable. */
  | {
      readonly kind: "retrying";
      /** The HTTP status; null if the connection failed. */
      readonly status: number | null;
      readonly attempt: number | null;
      readonly attemptsMax: number | null;
    }
  | { readonly kind: "notice"; readonly text: string };

/** The kind of action that is requested, as the agent describes it. A `command` can do anything. */
export type Risk = "read" | "change" | "command" | "network" | "unknown";

export type AgentRequest =
  | {
      readonly kind: "permission";
      readonly tool: string;
      readonly title: string;
      readonly command: string | null;
      readonly paths: readonly string[];
      readonly risk: Risk;
      /** The answers that the agent offers, in its words. */
      readonly options: readonly string[];
      /** True if the agent asks to call one of Kinfold's tools. */
      readonly ours: boolean;
    }
  /** The agent asks to leave planning mode. Allow approves the plan; deny makes the agent go on planning. */
  | { readonly kind: "plan"; readonly title: string; readonly text: string }
  /** All questions of one form, to be asked together. */
  | { readonly kind: "question"; readonly questions: readonly AgentQuestion[] };

export interface AgentQuestion {
  readonly id: string;
  readonly text: string;
  readonly options: readonly string[];
  readonly multiple: boolean;
}

export type AgentAnswer =
  | { readonly kind: "allow" }
  | { readonly kind: "deny" }
  /** The answers by question id, without the unanswered questions. */
  | { readonly kind: "answer"; readonly answers: Readonly<Record<string, string | readonly string[]>> };
