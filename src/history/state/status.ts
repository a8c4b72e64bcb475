import type { Confidence, HistoryState } from "../../contract/index.ts";
import type { LiveSession, SessionFacts, SpawnCall, ToldState } from "../port.ts";

export interface Judgement {
  readonly state: HistoryState;
  readonly reason: string;
  readonly confidence: Confidence;
  readonly error: string | null;
  /** The time of the evidence; null when the evidence has no time. */
  readonly at: number | null;
}

/** Whether a process works on a tree, and what the process reports about itself. */
export interface Liveness extends Pick<LiveSession, "alive" | "doing" | "startedAt" | "how"> {
  /** The process counts as gone only because the agent's list of processes does not contain it. */
  readonly isAbsent?: boolean;
  /** The agent's list of processes may have been read before this process was added to it. */
  readonly isTooEarly?: boolean;
}

export const NOT_KNOWN_ALIVE: Liveness = {
  alive: null,
  doing: null,
  startedAt: null,
  how: "no process is known for it",
};

export interface SubagentEvidence {
  readonly facts: SessionFacts | null;
  readonly call: SpawnCall | null;
  /** The latest report about this sub-agent, received by any session of the family. */
  readonly told: ToldState | null;
  /** The liveness of the root session's process, which runs every sub-agent. */
  readonly root: Liveness;
  /**
   * Why the sub-agent is known to be working: a hook reported its start and no hook reported its stop, or its
   * file grew while we watched. The age of a file is never a reason.
   */
  readonly seenWorking: string | null;
  /** The parent is no longer working, so a result that the parent waited for will not be used. */
  readonly parentIsOver: boolean;
}

export interface SessionEvidence {
  readonly facts: SessionFacts;
  readonly live: Liveness;
  readonly seenWorking: string | null;
  readonly runningCount: number;
}

/**
 * Judges a sub-agent by the strongest evidence available: a report to its parent, its call's result, direct
 * observation, and only then how its file ends.
 */
export function judgeSubagent(evidence: SubagentEvidence): Judgement {
  return (
    byTold(evidence) ??
    byResult(evidence) ??
    byRun(evidence) ??
    bySight(evidence) ??
    byEnding(evidence) ??
    byAbsence(evidence)
  );
}

export function judgeSession(evidence: SessionEvidence): Judgement {
  const { live, facts } = evidence;
  if (live.alive === true && live.doing === "busy") return certain("running", live.how, facts.lastAt);
  if (live.alive === true && live.doing === "waiting") return certain("waiting", live.how, facts.lastAt);
  const judged = bySessionEnding(evidence);
  return notDoneBefore(judged, Math.max(evidence.runningCount, live.alive ? facts.backgroundCount : 0));
}

/** Whether a report is about the current work: it must not be older than the last prompt. */
function isFresh(at: number | null, facts: SessionFacts | null): boolean {
  const promptedAt = facts?.promptedAt ?? null;
  return at === null || promptedAt === null || at >= promptedAt;
}

function byTold({ told, facts }: SubagentEvidence): Judgement | null {
  if (told === null || told.state === "running" || !isFresh(told.at, facts)) return null;
  if (told.state !== "unknown") {
    return { ...certain(told.state, `${told.how} says so`, told.at), error: told.error };
  }
  const { kind, error } = facts?.ending ?? { kind: "ended", error: null };
  const reason = `${told.how} says that it stopped, and its file shows how`;
  if (kind === "failed") return { ...likely("failed", reason, told.at), error };
  if (kind === "ended" || kind === "answered") return likely("completed", reason, told.at);
  return likely("interrupted", reason, told.at);
}

function byResult({ call, facts }: SubagentEvidence): Judgement | null {
  const result = call === null || call.many ? null : call.result;
  if (result === null || result.state === "running" || !isFresh(result.at, facts)) return null;
  return {
    ...certain(result.state, "its call's result in the parent says so", result.at),
    error: result.error,
  };
}

/**
 * Judges by the end of a call that started several sub-agents. If the sub-agent's own file records an end,
 * that end is used instead.
 */
function byRun({ call, facts }: SubagentEvidence): Judgement | null {
  const over = call?.many ? call.over : undefined;
  if (over === undefined || over.state === "running" || !isFresh(over.at, facts) || hasEnd(facts))
    return null;
  const reason = `${over.how} says that the work it was part of is over`;
  return over.state === "cancelled"
    ? certain("cancelled", reason, over.at)
    : likely("interrupted", reason, over.at);
}

/**
 * A sub-agent that was seen working counts as running. Returns null if its file shows an end, because writing
 * the last row also makes the file grow, and hooks do not report every end.
 */
function bySight({ seenWorking, facts }: SubagentEvidence): Judgement | null {
  if (seenWorking === null || hasEnd(facts) || (facts !== null && byNote(facts) !== null)) return null;
  return likely("running", seenWorking, facts?.lastAt ?? null);
}

function hasEnd(facts: SessionFacts | null): boolean {
  const kind = facts?.ending.kind;
  return kind === "ended" || kind === "failed" || kind === "interrupted";
}

function byEnding(evidence: SubagentEvidence): Judgement | null {
  const { facts, call, root } = evidence;
  if (facts === null) return null;
  const { ending } = facts;
  const held = isHeld(evidence);
  const noted = byNote(facts);
  if (noted !== null) return noted;
  switch (ending.kind) {
    case "ended":
      return facts.finished || ending.confirmed
        ? certain("completed", ending.how, ending.at)
        : likely("completed", `${ending.how}, which its parent has not confirmed`, ending.at);
    case "failed":
      return {
        ...(facts.finished ? certain : likely)("failed", ending.how, ending.at),
        error: ending.error,
      };
    case "interrupted":
      return certain("interrupted", ending.how, ending.at);
    case "answered":
      return held && call?.movedOn !== true
        ? likely("running", `${ending.how}; ${root.how}`, ending.at)
        : likely("completed", `${ending.how}, which its parent has not confirmed`, ending.at);
    case "toolError":
      if (held && call?.movedOn !== true) return likely("running", `${ending.how}; ${root.how}`, ending.at);
      // If the agent recorded that the turn is over, the failed call ended it. If not, the agent was cut off,
      // because an agent normally writes an answer after a failed call.
      return ending.confirmed
        ? { ...likely("failed", `${ending.how}, and nothing came after it`, ending.at), error: ending.error }
        : cutOff(root, `${ending.how}, and nothing came after it`, ending.at);
    default: {
      const state = ending.kind === "working" ? "running" : "pending";
      return held
        ? likely(state, `${ending.how}; ${root.how}`, ending.at)
        : cutOff(root, ending.how, ending.at);
    }
  }
}

/**
 * Judges by the agent's own record that the sub-agent is over, if the last row shows no end. The agent writes
 * the record when a sub-agent ends or fails, but not when it is stopped. A later prompt does not remove the
 * record, so after a later prompt the record is ignored.
 */
function byNote(facts: SessionFacts): Judgement | null {
  const { ending, finished, promptedAt, createdAt } = facts;
  if (finished !== true || hasEnd(facts)) return null;
  if (promptedAt !== null && createdAt !== null && promptedAt > createdAt) return null;
  const reason = `the agent's records say that it is over, and ${ending.how}`;
  return ending.kind === "toolError"
    ? { ...likely("failed", reason, ending.at), error: ending.error }
    : likely("completed", reason, ending.at);
}

function byAbsence(evidence: SubagentEvidence): Judgement {
  const { call, root } = evidence;
  const at = call?.at ?? null;
  const how = "it has no file, and its call has no result";
  if (call === null) return guess("unknown", "neither a file nor a call of it was found", at);
  const isLeft = call.movedOn || isAbandoned(evidence);
  if (call.progressAt !== undefined) return byProgress(evidence, call.progressAt, isLeft);
  if (root.alive === true && !isLeft && !isBefore(at, root)) {
    return likely("pending", `${how} yet; ${root.how}`, at);
  }
  if (isLeft) return certain("orphaned", `${how}, and its parent has continued without one`, at);
  return confidently(root)("orphaned", `${how}; ${root.how}`, at);
}

/** Judges a sub-agent that has no file, but whose parent's file shows that it worked. */
function byProgress({ root }: SubagentEvidence, at: number | null, isLeft: boolean): Judgement {
  const how = "its parent's file shows it at work, and its call has no result";
  if (root.alive === true && !isLeft && !isBefore(at, root))
    return likely("running", `${how}; ${root.how}`, at);
  if (isLeft) return certain("interrupted", `${how}: its parent has continued without one`, at);
  return cutOff(root, how, at);
}

/** Whether the process that ran the sub-agent is alive, and its parent has not stopped waiting for it. */
function isHeld(evidence: SubagentEvidence): boolean {
  const { facts, root } = evidence;
  return root.alive === true && !isBefore(facts?.lastAt ?? null, root) && !isAbandoned(evidence);
}

/** Whether the parent waited for this sub-agent and stopped waiting. Never true for background work. */
function isAbandoned({ call, parentIsOver }: SubagentEvidence): boolean {
  if (call === null || call.background || call.result !== null) return false;
  return call.movedOn || parentIsOver;
}

/** Whether this time is before the start of the current process. */
function isBefore(at: number | null, { startedAt }: Liveness): boolean {
  return at !== null && startedAt !== null && at < startedAt;
}

function bySessionEnding({ facts, live, seenWorking }: SessionEvidence): Judgement {
  const { ending } = facts;
  const isLive = live.alive === true && !isBefore(facts.lastAt, live);
  switch (ending.kind) {
    case "ended":
      return ending.confirmed || live.doing === "idle"
        ? certain("completed", ending.how, ending.at)
        : likely("completed", ending.how, ending.at);
    case "failed":
      return { ...likely("failed", ending.how, ending.at), error: ending.error };
    case "interrupted":
      return certain("interrupted", ending.how, ending.at);
    case "answered":
      if (isLive && live.doing !== "idle") return likely("running", `${ending.how}; ${live.how}`, ending.at);
      if (!isLive && seenWorking !== null) return likely("running", seenWorking, ending.at);
      return likely("completed", `${ending.how}, and nothing came after it`, ending.at);
    case "empty":
      return isLive
        ? likely("pending", `${ending.how}; ${live.how}`, ending.at)
        : guess("unknown", ending.how, ending.at);
    default:
      if (isLive && live.doing === "idle")
        return likely("interrupted", `${ending.how}, but ${live.how}`, ending.at);
      if (isLive) return likely("running", `${ending.how}; ${live.how}`, ending.at);
      if (seenWorking !== null) return likely("running", seenWorking, ending.at);
      return cutOff(live, ending.how, ending.at);
  }
}

function cutOff(live: Liveness, how: string, at: number | null): Judgement {
  const why = live.alive === true ? "the current process started later, or continued without it" : live.how;
  return confidently(live)("interrupted", `${how}; ${why}`, at);
}

function confidently({ alive, isTooEarly }: Liveness): typeof certain {
  if (alive === null) return guess;
  return isTooEarly === true ? likely : certain;
}

/** A parent is not done while its background sub-agents are still running. */
export function notDoneBefore(judged: Judgement, runningCount: number): Judgement {
  if (judged.state !== "completed" || runningCount === 0) return judged;
  const what = runningCount === 1 ? "a sub-agent it started" : `${runningCount} sub-agents it started`;
  return likely(
    "running",
    `its own work is over, but ${what} still ${runningCount === 1 ? "runs" : "run"}`,
    judged.at,
  );
}

function certain(state: HistoryState, reason: string, at: number | null): Judgement {
  return { state, reason, confidence: "certain", error: null, at };
}

function likely(state: HistoryState, reason: string, at: number | null): Judgement {
  return { state, reason, confidence: "likely", error: null, at };
}

function guess(state: HistoryState, reason: string, at: number | null): Judgement {
  return { state, reason, confidence: "guess", error: null, at };
}
