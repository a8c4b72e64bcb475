import { NO_USAGE } from "../contract/index.ts";
import type { HistoryState, Usage } from "../contract/index.ts";

/**
 * What a reader has learnt about one session so far. Plain JSON: it is kept beside the position and
 * handed back when reading goes on, so that new bytes are enough to bring it up to date. It grows
 * with the sub-agents a session started, never with its length.
 */
export interface SessionFacts {
  /** The agent's own id of this session or sub-agent. */
  readonly id: string;
  /** The agent's own id of the session at the top of the tree; equals `id` for that one. */
  rootId: string | null;
  isSubagent: boolean;
  /** The agent's own bookkeeping (review, compaction, memory): kept, but not shown as a child. */
  internal: boolean;
  title: string | null;
  /** The beginning of the first prompt, as a person would recognise it. */
  firstPrompt: string | null;
  /** `promptKey` of the whole first prompt, for linking by text alone. */
  promptKey: string | null;
  /** The first ref of the file: files that begin with the same one replay the same history. */
  firstRef: string | null;
  model: string | null;
  cwd: string | null;
  gitBranch: string | null;
  agentVersion: string | null;
  createdAt: number | null;
  /** The latest time that stands in the file. Never the file's own time. */
  lastAt: number | null;
  /** When it was last prompted, or woken by the end of what it had started: what was told of it before is about an earlier stretch of work. */
  promptedAt: number | null;
  usage: Usage;
  /** Prompts and answers; blocks of one answer count once. */
  messageCount: number;
  toolUseCount: number;
  /** What the session's own files say about who started it. */
  parent: ParentClaim | null;
  agentType: string | null;
  /** The name it was given when it was started, where the agent has such names. */
  name: string | null;
  description: string | null;
  /** Whether its own bookkeeping says that it is over (it may have failed); null where none is kept. */
  finished: boolean | null;
  /** Every call in this session that starts a sub-agent, in order. */
  calls: SpawnCall[];
  /** Ends and states of sub-agents that this session was told of, besides the calls' results. */
  told: ToldState[];
  ending: Ending;
  /** Work the agent itself counted as still running when its last turn ended. */
  backgroundCount: number;
  /** Parts of the file that the agent has left behind, by byte offsets, the newest ones; absent where it has left nothing. */
  leftRanges?: FileRange[];
}

/** From the first byte to before the last. */
export interface FileRange {
  readonly from: number;
  readonly to: number;
}

/** What a child's own files claim about its parent; the family decides what is true. */
export interface ParentClaim {
  /** The parent's own id; null when only the call is named. */
  readonly id: string | null;
  readonly callId: string | null;
  /** Other ids by which the call may be known, see `SpawnCall.taskIds`. */
  readonly taskIds?: readonly string[];
  /** A few words for the evidence: "its sidecar names the call". */
  readonly how: string;
}

/** A call that starts a sub-agent. `result` stays null until the session was given one. */
export interface SpawnCall {
  readonly callId: string;
  readonly tool: string;
  readonly description: string | null;
  readonly agentType: string | null;
  readonly name: string | null;
  readonly promptKey: string | null;
  /** Asked to run on in the background, or answered as launched. */
  background: boolean;
  /** It starts several sub-agents, and its result is not theirs. */
  readonly many: boolean;
  readonly at: number | null;
  /** Known once a result, an activity row or a told state names it. */
  agentId: string | null;
  /** Other ids by which files name this call's work (a workflow's task and run); mostly none. */
  taskIds: string[];
  result: CallResult | null;
  /** The session went on with something else after it, so a missing result will not come any more. */
  movedOn: boolean;
  /** What was told of the work of all that it started, where it starts several. */
  over?: Pick<ToldState, "state" | "how" | "at">;
  /** When the session's own file last showed the sub-agent at work; absent where it never did. */
  progressAt?: number | null;
}

export interface CallResult {
  /** `running` means launched: the call returned and the work goes on. */
  readonly state: HistoryState;
  readonly error: string | null;
  readonly at: number | null;
  readonly durationMs: number | null;
  readonly tokens: number | null;
  readonly toolUseCount: number | null;
}

/** The last wins as the state; the first that ended it is when it ended. */
export interface ToldState {
  readonly agentId: string;
  callId: string | null;
  /** `unknown` when it was told that it ended, but not how. */
  state: HistoryState;
  /** What told it: "a task notification", "wait_agent's answer". */
  how: string;
  error: string | null;
  firstAt: number | null;
  at: number | null;
}

/**
 * How the file stops, which says how the work stands only together with what else is known.
 *
 * - `empty`: nothing was said yet.
 * - `prompted`: a prompt and nothing after it.
 * - `working`: in the middle of a turn (an open call, a result not yet answered, half an answer).
 * - `answered`: an answer with text and no open call, from a version that does not write whether an answer is whole.
 * - `toolError`: a failed call's result, and nothing after it.
 * - `ended`: the turn came to its end.
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
  /** In words, for the evidence: "its last row is an answer with end_turn". */
  readonly how: string;
  /** True when the agent itself says that the turn is over (a record of its own, a broken channel), not just the last row's shape. */
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
