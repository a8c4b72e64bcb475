import type { Outcome, SessionStatus, Waiting } from "../contract/index.ts";

/** What the status and the end of a round are derived from. Nothing else may decide either. */
export interface RoundFacts {
  readonly ended: boolean;
  readonly roundOpen: boolean;
  readonly roundOpenedAt: number | null;
  readonly held: boolean;
  readonly turnRunning: boolean;
  /** Status of the last turn of this round; null when it has had none. */
  readonly lastTurn: Outcome | null;
  /** Messages queued or taken. */
  readonly openMessages: number;
  readonly openTriggers: number;
  readonly openTriggerId: string | null;
  readonly backgroundUntil: number | null;
  readonly parked: { readonly on: "limit" | "budget"; since: number; until: number | null } | null;
  readonly awaitedChildren: number;
  readonly updatedAt: number;
}

/**
 * `failed`, `cancelled` and `interrupted` close a round in the transaction that makes them true;
 * this rule says when an open round has completed.
 */
export function roundHasCompleted(facts: RoundFacts): boolean {
  return (
    facts.roundOpen &&
    !facts.ended &&
    !facts.turnRunning &&
    facts.openMessages === 0 &&
    facts.openTriggers === 0 &&
    facts.backgroundUntil === null &&
    facts.parked === null &&
    facts.awaitedChildren === 0
  );
}

export function statusOf(facts: RoundFacts): { status: SessionStatus; waiting: Waiting | null } {
  if (facts.ended) return { status: "ended", waiting: null };
  const { openTriggerId: triggerId } = facts;
  // A turn that waits for an answer does nothing else, so that is what the session does.
  if (triggerId !== null && facts.roundOpen)
    return waitingOn({ on: "trigger", triggerId, since: facts.updatedAt });
  if (facts.turnRunning) return { status: "running", waiting: null };
  if (!facts.roundOpen) return { status: "idle", waiting: null };
  if (facts.parked !== null) return waitingOn(parkedOf(facts.parked));
  const since = facts.updatedAt;
  if (facts.openMessages > 0) return waitingOn({ on: "slot", since });
  if (facts.awaitedChildren > 0) return waitingOn({ on: "children", since });
  if (facts.backgroundUntil !== null) return { status: "running", waiting: null };
  return waitingOn({ on: "slot", since });
}

function parkedOf({ on, since, until }: NonNullable<RoundFacts["parked"]>): Waiting {
  return { on, since, ...(until === null ? {} : { until }) };
}

function waitingOn(waiting: Waiting): { status: SessionStatus; waiting: Waiting } {
  return { status: "waiting", waiting };
}

/** Whether a message from this sender ends the hold on an inbox. */
export function releases(
  held: "failed" | "stopped" | null,
  sender: { kind: "person" | "session" | "daemon" | "outside"; id: string | null },
  parentId: string | null,
): boolean {
  if (held === null || held === "failed") return true;
  return sender.kind === "person" || (sender.kind === "session" && sender.id === parentId);
}

/** What a stop reason means for the turn. `byUs`: somebody asked Kinfold to stop it. */
export function outcomeOf(stopReason: string, byUs: boolean): Outcome {
  // Where the agent had finished first, its outcome stands.
  if (byUs && stopReason !== "end_turn") return "cancelled";
  switch (stopReason) {
    case "end_turn":
      return "completed";
    case "cancelled":
      return "interrupted";
    default:
      return "failed";
  }
}
