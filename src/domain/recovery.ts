/** A turn that was cut off when the daemon died. */
export interface CutTurn {
  readonly sessionEnded: boolean;
  readonly stopAsked: boolean;
  /** Stored before the first prompt is sent; so null means that nothing was sent. */
  readonly agentSessionId: string | null;
  readonly canLoad: boolean;
  readonly kind: "prompt" | "autonomous";
}

export type Recovery =
  /** The session has ended or a caller stopped the turn: the turn is settled, never resumed. */
  | "settle"
  /** Nothing was sent: the same turn starts again. */
  | "restart"
  /** The agent's session is loaded, and its record shows what the turn did. */
  | "load"
  /** It is unknown what the agent did. So prompts are not sent again, but messages that only inform are. */
  | "interrupt";

export function recoveryOf(turn: CutTurn): Recovery {
  if (turn.sessionEnded || turn.stopAsked) return "settle";
  if (turn.kind === "autonomous") return "interrupt";
  if (turn.agentSessionId === null) return "restart";
  return turn.canLoad ? "load" : "interrupt";
}

/** The first attempt and two resumes. */
const ATTEMPTS_MAX = 3;

/**
 * Counts only attempts in which the agent began to work. A turn without tool calls may always continue,
 * because it has changed nothing.
 */
export function mayResume(turn: { attemptsBegun: number; toolCalls: number }): boolean {
  return turn.attemptsBegun < ATTEMPTS_MAX || turn.toolCalls === 0;
}

/** Why an agent's session could not be loaded, as in `OpenFailure` of the drivers. */
export type LoadFailure = (typeof LOAD_FAILURES)[number];

const LOAD_FAILURES = ["no_load", "no_session", "load_failed"] as const;

export function isLoadFailure(reason: string): reason is LoadFailure {
  return LOAD_FAILURES.some((each) => each === reason);
}

/**
 * Whether a cut turn whose agent could not load its session gets its original prompt in a new session. Only an
 * agent that keeps a record and has none of this session proves that nothing was done. An agent that keeps
 * none proves nothing, so its prompt is not sent again.
 */
export function mayBeginAfresh(
  failure: LoadFailure | null,
  turn: { index: number; attemptsBegun: number },
): boolean {
  return failure === "no_session" && turn.index === 0 && turn.attemptsBegun === 0;
}
