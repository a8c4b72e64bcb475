/** What is known about a turn that was cut by our own death. */
export interface CutTurn {
  readonly sessionEnded: boolean;
  readonly stopAsked: boolean;
  /** The agent's own session id, stored before the first prompt was ever sent. */
  readonly agentSessionId: string | null;
  readonly canLoad: boolean;
  readonly kind: "prompt" | "autonomous";
}

export type Recovery =
  /** Somebody had stopped it: it is settled, never resumed. */
  | "settle"
  /** Certainly nothing was sent: the same turn starts afresh. */
  | "restart"
  /** The agent's session is loaded and read back. */
  | "load"
  /** Nothing can be known: work is not repeated, information is. */
  | "interrupt";

export function recoveryOf(turn: CutTurn): Recovery {
  if (turn.sessionEnded || turn.stopAsked) return "settle";
  if (turn.kind === "autonomous") return "interrupt";
  if (turn.agentSessionId === null) return "restart";
  return turn.canLoad ? "load" : "interrupt";
}

/** A turn is resumed at most twice. */
const ATTEMPTS_MAX = 3;

/**
 * Whether a turn goes on after its agent was loaded. Only attempts in which the agent had begun to
 * work count, and a turn that has called no tool has changed nothing that could be done twice.
 */
export function mayResume(turn: { attemptsBegun: number; toolCalls: number }): boolean {
  return turn.attemptsBegun < ATTEMPTS_MAX || turn.toolCalls === 0;
}
