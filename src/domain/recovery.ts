/** What is known about a turn that was cut by our own death. */
export interface CutTurn {
  readonly sessionEnded: boolean;
  readonly stopAsked: boolean;
  /** The agent's own session id, stored before the first prompt was ever sent. */
  readonly agentSessionId: string | null;
  readonly canLoad: boolean;
  readonly attempt: number;
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

/** At most twice a turn. */
const ATTEMPTS_MAX = 3;

export function recoveryOf(turn: CutTurn): Recovery {
  if (turn.sessionEnded || turn.stopAsked) return "settle";
  if (turn.attempt >= ATTEMPTS_MAX) return "interrupt";
  if (turn.kind === "autonomous") return "interrupt";
  if (turn.agentSessionId === null) return "restart";
  return turn.canLoad ? "load" : "interrupt";
}
