import type { Outcome, SessionStatus, Waiting } from "../contract/index.ts";
import { boundedText } from "../text/fence.ts";

/** The only facts that may decide a round's status and its end. */
export interface RoundFacts {
  readonly ended: boolean;
  readonly roundOpen: boolean;
  readonly roundOpenedAt: number | null;
  readonly held: boolean;
  readonly turnRunning: boolean;
  readonly lastTurn: Outcome | null;
  /** Messages in state queued or taken. */
  readonly openMessages: number;
  readonly openTriggers: number;
  readonly openTriggerId: string | null;
  readonly backgroundUntil: number | null;
  readonly parked: { readonly on: "limit" | "budget"; since: number; until: number | null } | null;
  readonly awaitedChildren: number;
  readonly updatedAt: number;
}

/** Decides only whether a round has completed. Recording any other outcome closes the round at once. */
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
  // A turn that waits for an answer does nothing else, so the session counts as waiting.
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

/** Messages wait after a failure or a stop. Returns whether a message from this sender ends that wait. */
export function releases(
  held: "failed" | "stopped" | null,
  sender: { kind: "person" | "session" | "daemon" | "outside"; id: string | null },
  parentId: string | null,
): boolean {
  if (held === null || held === "failed") return true;
  return sender.kind === "person" || (sender.kind === "session" && sender.id === parentId);
}

/** Maps a stop reason to the turn's outcome. `byUs`: a caller asked Kinfold to stop the turn. */
export function outcomeOf(stopReason: string, byUs: boolean): Outcome {
  // If the agent finished before the stop, the turn has completed.
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

/** Limit of a last message in turns, callbacks and triggers; the transcript entry may be longer. */
export const REPORT_CHARS_MAX = 64 * 1024;

export function shownReport(text: string): string {
  return boundedText(text, REPORT_CHARS_MAX);
}

export interface TurnSaid {
  readonly lastMessage: string | null;
  /** The turn received nothing but callbacks of the session's children. */
  readonly isAboutCallbacks: boolean;
}

export interface Report {
  readonly report: string | null;
  /** The newest last message, if it did not become the report; otherwise null. */
  readonly lastWords: string | null;
}

/** Each turn's last message replaces the report, unless it only answers callbacks and is shorter. */
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
