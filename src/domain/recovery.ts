/** What is known about a turn that was cut by the daemon's death. */
export interface CutTurn {
  readonly sessionEnded: boolean;
  readonly stopAsked: boolean;
  /** The agent's session id, stored before the first prompt is sent. */
  readonly agentSessionId: string | null;
  readonly canLoad: boolean;
  readonly kind: "prompt" | "autonomous";
}

export type Recovery =
  /** A caller had stopped it: it is settled, never resumed. */
  | "settle"
  /** Nothing was sent: the same turn starts again. */
  | "restart"
  /** The agent's session is loaded and read back. */
  | "load"
  /** Nothing is known: work is not repeated, information is. */
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
 * Returns whether a turn continues after its agent was loaded. Only attempts in which the agent began to work
 * count. A turn that has called no tool may always continue, because it has changed nothing.
 */
export function mayResume(turn: { attemptsBegun: number; toolCalls: number }): boolean {
  return turn.attemptsBegun < ATTEMPTS_MAX || turn.toolCalls === 0;
}
