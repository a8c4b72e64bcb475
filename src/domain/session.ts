import type { Outcome, SessionStatus, Waiting } from "../contract/index.ts";
import { boundedText } from "../text/fence.ts";

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

/** A turn's last message stands in its row, its callback and its trigger: beyond this only the entry has all of it. */
export const REPORT_CHARS_MAX = 64 * 1024;

export function shownReport(text: string): string {
  return boundedText(text, REPORT_CHARS_MAX);
}

/** What one turn of a round left. */
export interface TurnSaid {
  /** Its final message; null where it said nothing. */
  readonly lastMessage: string | null;
  /** Callbacks of the session's own children were all it had been sent. */
  readonly isAboutCallbacks: boolean;
}

/** What a round has to tell, and what its agent said after that. */
export interface Report {
  readonly report: string | null;
  /** The last message, where it is not the report. */
  readonly lastWords: string | null;
}

/**
 * The report of a round is its last final message that is not merely an answer to a callback: a
 * parent that answers a late child with "noted" has not replaced what it reported before.
 */
export function reportOf(turns: readonly TurnSaid[]): Report {
  let report: string | null = null;
  let last: string | null = null;
  for (const { lastMessage, isAboutCallbacks } of turns) {
    if (lastMessage === null || lastMessage.trim() === "") continue;
    last = lastMessage;
    const isMereAnswer = isAboutCallbacks && report !== null && lastMessage.length < report.length;
    if (!isMereAnswer) report = lastMessage;
  }
  return { report, lastWords: last === report ? null : last };
}
