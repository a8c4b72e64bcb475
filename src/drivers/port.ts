import type { FileChange } from "../domain/receipt.ts";
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
  /** What a person does to sign in, as in "to sign in, run: …". */
  readonly howToSignIn?: string;
  /** What this agent can do here. Cheap enough to ask at every start; starts no agent session. */
  probe(): Promise<Agent>;
  /** Starts the agent's process and opens its session: a new one, or `load`. Never rejects. */
  open(request: OpenRequest): Promise<OpenResult>;
}

/** What holds an agent to each mode. */
export type Enforcement = Readonly<Record<Permission, Level>>;

export interface OpenRequest {
  readonly sessionId: string;
  /** Goes into the environment as KINFOLD_LEASE; no secret. Marks every process of this agent. */
  readonly leaseId: string;
  readonly cwd: string;
  readonly model: string | null;
  readonly permission: Permission;
  /** Which of the agent's own tools it may use, as profiles call them; null is all. */
  readonly tools: readonly string[] | null;
  readonly notTools: readonly string[];
  /** The person's own MCP servers that it may use; null is all. */
  readonly servers: readonly string[] | null;
  /** Our own tools. The token travels over the protocol or the environment, never in argv. */
  readonly mcp: { readonly url: string; readonly token: string } | null;
  /** The agent's own session id, to be loaded and read back; null starts a new one. */
  readonly load: string | null;
  /** The agent's own id of another session, whose conversation the new one begins with a copy of. */
  readonly fork?: string | null;
  readonly startMs: number;
  readonly onUpdate: (update: AgentUpdate) => void;
  /** A request that the agent blocks on. The driver answers it with what this resolves to. */
  readonly onRequest: (request: AgentRequest) => Promise<AgentAnswer>;
  /**
   * Every process is started inside this: it calls `start`, which is synchronous, under the session's lock, if
   * the session still wants an agent. False: it does not, and nothing may stay that was started. May reject, after
   * which nothing may stay either. A driver without a process does not call it.
   */
  readonly admitProcess: AdmitProcess;
  /**
   * Called with the living descendants that do not carry the marker, whenever these change. After a crash
   * nothing but this memory ties them to the agent. Not called where a namespace holds them.
   */
  readonly onUnmarked?: (processes: readonly RememberedProcess[]) => void;
}

/** `start` may be called again and then returns the same; null where the process could not be made. */
export type AdmitProcess = (start: () => ProcessIdentity | null) => Promise<boolean>;

export type OpenResult =
  | { readonly ok: true; readonly handle: AgentHandle }
  | { readonly ok: false; readonly reason: OpenFailure; readonly message: string };

/** `unwanted`: the session was stopped before the process began. `load_failed`, `fork_failed`: the process works but the old conversation could not be loaded or copied. */
export type OpenFailure =
  | "not_installed"
  | "unwanted"
  | "exited"
  | "timeout"
  | "protocol"
  | "not_signed_in"
  | "load_failed"
  | "fork_failed";

export interface AgentHandle {
  readonly agentSessionId: string;
  readonly agentVersion: string | null;
  readonly model: string | null;
  /** What the load replayed; null after a new session or a fork. */
  readonly replay: Replay | null;
  /** Resolves when the agent has answered the prompt, or cannot any more. Never rejects. */
  prompt(text: string): Promise<PromptEnd>;
  /** Into the running turn. Says what really happened; `lost`: the agent ended before it said anything. */
  steer(text: string): Promise<"injected" | "queued" | "restarted" | "refused" | "lost">;
  /** Asks the agent to cut its running prompt; the prompt then ends. */
  cancel(): void;
  /** Cancels if needed, waits at most `graceMs` for an orderly end, then ends the whole process tree. */
  stop(graceMs: number): Promise<StopReport>;
  /** Work that goes on outside a prompt: the agent's own signal, else a descendant begun since `since`. */
  background(since: number): Promise<boolean>;
  descendants(): Promise<ProcessIdentity[]>;
  readonly exited: Promise<AgentExit>;
}

export interface AgentExit {
  readonly code: number | null;
  readonly signal: string | null;
  /** The last lines of its standard error, for the reason. */
  readonly stderrTail: string;
}

export interface StopReport {
  readonly left: readonly ProcessIdentity[];
}

/** What a loaded conversation held. A delivery id counts only in these. */
export interface Replay {
  readonly userTexts: readonly string[];
  /** Results of our own tools. */
  readonly toolResults: readonly string[];
  /** How many tools the agent called after each of the user texts, and before the next. */
  readonly toolCalls: readonly number[];
  /** The agent's last message, if the replay had one after the last user text. */
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
  /** The agent itself replied to the prompt, with a stop reason or an error: so it has received it. */
  readonly isAnswered: boolean;
  /** One line for a person; null where the stop reason says it all. */
  readonly error: string | null;
  /** How its process ended, where it ended before the reply. */
  readonly exit: AgentExit | null;
  /** What this prompt used; null where the agent did not say. */
  readonly usage: Usage | null;
  /** The tokens in `usage` are not all that it used: of several model calls only the last was counted. */
  readonly isUsagePartial?: boolean;
  /** The provider's HTTP status, where the agent gives it beside its words; only with `error`. */
  readonly errorStatus?: number | null;
  /** When the vendor's usage limit is over, in milliseconds since 1970; only with `error`. */
  readonly limitedUntil?: number | null;
}

export type AgentUpdate =
  | { readonly kind: "fragment"; readonly what: "text" | "thought"; readonly text: string }
  /** A message that has ended. Of a very long one `text` is the beginning, and its fragments had all `chars` of it. */
  | { readonly kind: "text"; readonly text: string; readonly chars?: number }
  | { readonly kind: "thought"; readonly text: string; readonly chars?: number }
  | {
      readonly kind: "toolCall";
      readonly callId: string;
      readonly tool: string;
      readonly title: string;
      readonly input: unknown;
      readonly command?: string;
      readonly paths?: readonly string[];
    }
  | {
      readonly kind: "toolResult";
      readonly callId: string;
      readonly tool: string;
      readonly text: string;
      readonly ok: boolean;
      readonly command?: string;
      readonly exitCode?: number | null;
      readonly files?: readonly FileChange[];
      /** True for a result of one of our own tools: a delivery id in it has landed. */
      readonly ours: boolean;
    }
  | { readonly kind: "plan"; readonly steps: readonly { title: string; status: string }[] }
  /** The agent has replaced its conversation so far by this summary of it. */
  | { readonly kind: "compaction"; readonly summary: string }
  /** What the running prompt has used so far; the prompt's end says it again, with the rest. */
  | { readonly kind: "usage"; readonly usage: Usage }
  /** The agent's model has answered. What the call used may now be in the agent's own session file. */
  | { readonly kind: "modelCall" }
  /** The agent asks its model again after an error. This is no sign that the model is there. */
  | {
      readonly kind: "retrying";
      /** Of HTTP; null where the connection failed. */
      readonly status: number | null;
      readonly attempt: number | null;
      readonly attemptsMax: number | null;
    }
  | { readonly kind: "notice"; readonly text: string };

/** What kind of thing is asked for, as far as the agent tells it: a command can do all of them. */
export type Risk = "read" | "change" | "command" | "network" | "unknown";

export type AgentRequest =
  | {
      readonly kind: "permission";
      readonly tool: string;
      readonly title: string;
      readonly command: string | null;
      readonly paths: readonly string[];
      readonly risk: Risk;
      /** What the agent itself offers as answers, in its words. */
      readonly options: readonly string[];
      /** True where the agent asks whether it may call one of our own tools. */
      readonly ours: boolean;
    }
  /** The agent would leave its planning: allow approves it, deny sends it back to planning. */
  | { readonly kind: "plan"; readonly title: string; readonly text: string }
  /** All questions of one form: they are asked together. */
  | { readonly kind: "question"; readonly questions: readonly AgentQuestion[] };

export interface AgentQuestion {
  readonly id: string;
  readonly text: string;
  readonly options: readonly string[];
  /** More than one of the options may be chosen. */
  readonly multiple: boolean;
}

export type AgentAnswer =
  | { readonly kind: "allow" }
  | { readonly kind: "deny" }
  /** By the questions' ids; one that nobody answered is left out. */
  | { readonly kind: "answer"; readonly answers: Readonly<Record<string, string | readonly string[]>> };
