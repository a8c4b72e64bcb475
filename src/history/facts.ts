import type { HistoryState, Usage } from "../contract/index.ts";
import { NO_USAGE } from "../contract/no-usage.ts";

/**
 * The facts that a reader has collected about one session so far. Plain JSON: it is stored with the position
 * and handed back when reading continues, so that reading only the new bytes brings it up to date. It grows
 * with the number of sub-agents a session started, never with the session's length.
 */
export interface SessionFacts {
  /** The agent's own id of this session or sub-agent. */
  readonly id: string;
  /** The agent's own id of the root session; equals `id` for the root itself. */
  rootId: string | null;
  isSubagent: boolean;
  /** An internal session of the agent (review, compaction, memory): imported, but not shown as a child. */
  internal: boolean;
  title: string | null;
  /** The beginning of the first prompt, in a form that a person recognises. */
  firstPrompt: string | null;
  /** `promptKey` of the whole first prompt, for linking a child to its parent by text alone. */
  promptKey: string | null;
  /** The ref of the file's first row: files with the same first ref replay the same history. */
  firstRef: string | null;
  model: string | null;
  cwd: string | null;
  gitBranch: string | null;
  agentVersion: string | null;
  createdAt: number | null;
  /** The latest timestamp inside the file. Never the file's modification time. */
  lastAt: number | null;
  /**
   * When the session was last prompted, or woken because something it had started ended. Reports from before
   * this time are about earlier work.
   */
  promptedAt: number | null;
  usage: Usage;
  /** Prompts and answers; the blocks of one answer count as one message. */
  messageCount: number;
  toolUseCount: number;
  /** The parent that the session's own files name. */
  parent: ParentClaim | null;
  agentType: string | null;
  /** The name given to it at its start, where the agent has such names. */
  name: string | null;
  description: string | null;
  /**
   * Whether the agent's records say that the session is over (it may have failed); null where the agent keeps
   * no such record.
   */
  finished: boolean | null;
  /** Every call in this session that starts a sub-agent, in order. */
  calls: SpawnCall[];
  /**
   * Ends and states of sub-agents that were reported to this session, apart from the results of its calls.
   */
  told: ToldState[];
  ending: Ending;
  /** The number of background tasks that the agent counted as still running when its last turn ended. */
  backgroundCount: number;
  /**
   * Parts of the file that the agent has left behind, as byte ranges; only the newest ones are kept. Absent
   * where it has left nothing behind.
   */
  leftRanges?: FileRange[];
}

/** A range of bytes: `from` is inclusive, `to` is exclusive. */
export interface FileRange {
  readonly from: number;
  readonly to: number;
}

/** What a child's own files claim about its parent; `family.ts` decides whether the claim is true. */
export interface ParentClaim {
  /** The parent's own id; null when the files name only the call. */
  readonly id: string | null;
  readonly callId: string | null;
  /** Other ids that may name the call; see `SpawnCall.taskIds`. */
  readonly taskIds?: readonly string[];
  /** The source of the claim in a few words, shown as evidence: "its sidecar names the call". */
  readonly how: string;
}

/** A call that starts a sub-agent. `result` stays null until the session receives one. */
export interface SpawnCall {
  readonly callId: string;
  readonly tool: string;
  readonly description: string | null;
  readonly agentType: string | null;
  readonly name: string | null;
  readonly promptKey: string | null;
  /** The call asked for background work, or its answer says that the work was launched. */
  background: boolean;
  /** The call starts several sub-agents, so its result belongs to none of them. */
  readonly many: boolean;
  readonly at: number | null;
  /** Known once a result, an activity row or a reported state names it. */
  agentId: string | null;
  /** Other ids that files use for this call's work (a workflow's task and run); usually none. */
  taskIds: string[];
  result: CallResult | null;
  /** The session continued with something else after this call, so a missing result will no longer arrive. */
  movedOn: boolean;
  /** For a call that starts several sub-agents: the state reported for all of them together. */
  over?: Pick<ToldState, "state" | "how" | "at">;
  /** When the session's own file last showed the sub-agent working; absent if it never did. */
  progressAt?: number | null;
}

export interface CallResult {
  /** `running` means launched: the call returned and the work continues. */
  readonly state: HistoryState;
  readonly error: string | null;
  readonly at: number | null;
  readonly durationMs: number | null;
  readonly tokens: number | null;
  readonly toolUseCount: number | null;
}

/**
 * A reported state of a sub-agent. The last report sets the state; the first report of an end sets the time
 * of the end.
 */
export interface ToldState {
  readonly agentId: string;
  callId: string | null;
  /** `unknown` when the report says that it ended, but not how. */
  state: HistoryState;
  /** The source of the report: "a task notification", "wait_agent's answer". */
  how: string;
  error: string | null;
  firstAt: number | null;
  at: number | null;
}

/**
 * How the file ends. This alone does not decide the session's state: `status.ts` combines it with other
 * facts.
 *
 * - `empty`: nothing was said yet.
 * - `prompted`: a prompt and nothing after it.
 * - `working`: in the middle of a turn (an open call, a result not yet answered, half an answer).
 * - `answered`: an answer with text and no open call, from a version that does not record whether an answer
 *   is complete.
 * - `toolError`: the result of a failed call, and nothing after it.
 * - `ended`: the turn ended.
 * - `failed`: the turn ended with an error.
 * - `interrupted`: the file itself says so.
 */
export interface Ending {
  readonly kind:
    | "empty"
    | "prompted"
    | "working"
    | "answered"
    | "toolError"
    | "ended"
    | "failed"
    | "interrupted";
  /** The reason in words, shown as evidence: "its last row is an answer with end_turn". */
  readonly how: string;
  /**
   * True when the agent itself says that the turn is over (in a separate record, or because its channel
   * broke); false when only the last row's shape suggests it.
   */
  readonly confirmed: boolean;
  readonly error: string | null;
  readonly at: number | null;
}

export const NOTHING_SAID: Ending = {
  kind: "empty",
  how: "nothing was said yet",
  confirmed: false,
  error: null,
  at: null,
};

export function noFacts(id: string): SessionFacts {
  return {
    id,
    rootId: null,
    isSubagent: false,
    internal: false,
    title: null,
    firstPrompt: null,
    promptKey: null,
    firstRef: null,
    model: null,
    cwd: null,
    gitBranch: null,
    agentVersion: null,
    createdAt: null,
    lastAt: null,
    promptedAt: null,
    usage: { ...NO_USAGE },
    messageCount: 0,
    toolUseCount: 0,
    parent: null,
    agentType: null,
    name: null,
    description: null,
    finished: null,
    calls: [],
    told: [],
    ending: NOTHING_SAID,
    backgroundCount: 0,
  };
}
