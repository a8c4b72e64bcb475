import type { HistoryState, Usage } from "../contract/index.ts";
import { NO_USAGE } from "../contract/no-usage.ts";

/**
 * The facts that a reader has collected about one session. They are stored as JSON together with the read
 * position, so that later only new bytes have to be read. Their size depends on the number of sub-agents, not
 * on the session's length.
 */
export interface SessionFacts {
  /** The id that the agent itself uses for this session or sub-agent. */
  readonly id: string;
  /** The agent's own id for the root session; equals `id` for the root itself. */
  rootId: string | null;
  isSubagent: boolean;
  /** An internal session of the agent (review, compaction, memory): imported, but not shown as a child. */
  internal: boolean;
  title: string | null;
  /** The beginning of the first prompt, shortened to one line. */
  firstPrompt: string | null;
  /** `promptKey` of the whole first prompt, for linking a child to its parent by text alone. */
  promptKey: string | null;
  /** The ref of the first row. Two files with the same first ref begin with the same history. */
  firstRef: string | null;
  model: string | null;
  cwd: string | null;
  gitBranch: string | null;
  agentVersion: string | null;
  createdAt: number | null;
  /** The latest timestamp inside the file, never the file's modification time. */
  lastAt: number | null;
  /** When the session was last prompted or woken. A report from before this time is about earlier work. */
  promptedAt: number | null;
  usage: Usage;
  /** Prompts and answers. All blocks of one answer count as one message. */
  messageCount: number;
  toolUseCount: number;
  /** The parent that is named in this session's own files. */
  parent: ParentClaim | null;
  agentType: string | null;
  /** The name that the sub-agent was started with; null if the agent does not name its sub-agents. */
  name: string | null;
  description: string | null;
  /** Whether the agent recorded that the session is over. Null: this agent keeps no such record. */
  finished: boolean | null;
  /** Every call that starts a sub-agent, in order. */
  calls: SpawnCall[];
  /** The states of sub-agents that were reported to this session, apart from the results in `calls`. */
  told: ToldState[];
  ending: Ending;
  /** How many background tasks were still running when the last turn ended, as counted by the agent. */
  backgroundCount: number;
  /** Byte ranges of rows that a rewind removed from the conversation. Only the newest ranges are kept. */
  leftRanges?: FileRange[];
}

/** `from` is inclusive, `to` is exclusive. */
export interface FileRange {
  readonly from: number;
  readonly to: number;
}

/** What a child's own files claim about its parent; `family.ts` decides whether the claim is true. */
export interface ParentClaim {
  /** Null when the files name only the call that started this session. */
  readonly id: string | null;
  readonly callId: string | null;
  /** Other ids that may name the call; see `SpawnCall.taskIds`. */
  readonly taskIds?: readonly string[];
  /** How the parent was found, shown as evidence: "its sidecar names the call". */
  readonly how: string;
}

/** A call that starts a sub-agent. */
export interface SpawnCall {
  readonly callId: string;
  readonly tool: string;
  readonly description: string | null;
  readonly agentType: string | null;
  readonly name: string | null;
  readonly promptKey: string | null;
  /** The call asked for background work, or its result says that the work goes on in the background. */
  background: boolean;
  /** The call starts several sub-agents, so its result is not about any single one of them. */
  readonly many: boolean;
  readonly at: number | null;
  /** Null until a result, an activity row or a report names the sub-agent. */
  agentId: string | null;
  /** Other ids that files use for this call's work, such as a workflow's task id and run id. */
  taskIds: string[];
  result: CallResult | null;
  /** The session continued after this call, so a missing result will no longer arrive. */
  movedOn: boolean;
  /** For a call that starts several sub-agents: the state reported for all of them together. */
  over?: Pick<ToldState, "state" | "how" | "at">;
  /** When this session's file last showed the sub-agent working. */
  progressAt?: number | null;
}

export interface CallResult {
  /** `running`: the call returned as soon as the work was launched, and the work continues. */
  readonly state: HistoryState;
  readonly error: string | null;
  readonly at: number | null;
  readonly durationMs: number | null;
  readonly tokens: number | null;
  readonly toolUseCount: number | null;
}

/**
 * The state of a sub-agent according to the reports about it. The last report sets `state`. `firstAt` is the
 * time of the first report that the sub-agent ended.
 */
export interface ToldState {
  readonly agentId: string;
  callId: string | null;
  /** `unknown`: the report says that the sub-agent ended, but not how. */
  state: HistoryState;
  /** The source of the report: "a task notification", "wait_agent's answer". */
  how: string;
  error: string | null;
  firstAt: number | null;
  at: number | null;
}

/**
 * How the file ends. `status.ts` combines this with other facts to decide the session's state.
 *
 * - `empty`: nothing was said yet.
 * - `prompted`: a prompt and nothing after it.
 * - `working`: in the middle of a turn (an open call, a result not yet answered, half an answer).
 * - `answered`: an answer with text and no open call, from a version that does not mark complete answers.
 * - `toolError`: the result of a failed call, and nothing after it.
 * - `ended`: the turn ended.
 * - `failed`: the turn ended with an error.
 * - `interrupted`: the file records an interruption.
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
  /** True when the agent recorded that the turn is over; false when only the last row's shape suggests it. */
  readonly confirmed: boolean;
  readonly error: string | null;
  readonly at: number | null;
}

export type Tokens = Readonly<Pick<Usage, "inputTokens" | "cachedTokens" | "outputTokens">>;

/** `before` is the usage already counted for the same message: only the increase is added. */
export function countTokens({ usage }: SessionFacts, now: Tokens, before: Tokens | undefined): void {
  for (const name of ["inputTokens", "cachedTokens", "outputTokens"] as const) {
    usage[name] += Math.max(0, now[name] - (before?.[name] ?? 0));
  }
}

/** Moves `lastAt` forward to a timestamp from the file. */
export function seenAt(facts: SessionFacts, at: number | null): void {
  if (at !== null) facts.lastAt = Math.max(facts.lastAt ?? at, at);
}

export const NOTHING_SAID: Ending = {
  kind: "empty",
  how: "nothing was said yet",
  confirmed: false,
  error: null,
  at: null,
};

/** Returns the facts of a session before its file is read. */
export function foundFacts({ id, isSubagent }: { id: string; isSubagent: boolean }): SessionFacts {
  return { ...noFacts(id), isSubagent, rootId: isSubagent ? null : id };
}

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
