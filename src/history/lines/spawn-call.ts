import type { CallResult, SessionFacts, SpawnCall, ToldState } from "../facts.ts";

/** No real session starts this many sub-agents. The limit keeps a hostile file from filling the memory. */
export const CALLS_MAX = 10_000;

export function newCall(call: Pick<SpawnCall, "callId" | "tool" | "at"> & Partial<SpawnCall>): SpawnCall {
  return {
    description: null,
    agentType: null,
    name: null,
    promptKey: null,
    background: false,
    many: false,
    agentId: null,
    taskIds: [],
    result: null,
    movedOn: false,
    ...call,
  };
}

export function newResult(
  result: Pick<CallResult, "state" | "error" | "at"> & Partial<CallResult>,
): CallResult {
  return { durationMs: null, tokens: null, toolUseCount: null, ...result };
}

/** Marks unanswered calls: the session spoke or was prompted again, so their results will not arrive. */
export function movedOn({ facts, notes }: { facts: SessionFacts; notes: { unanswered: string[] } }): void {
  if (notes.unanswered.length === 0) return;
  const ids = new Set(notes.unanswered);
  for (const call of facts.calls) if (ids.has(call.callId)) call.movedOn = true;
  notes.unanswered = [];
}

/**
 * The last report sets the state. But a report that says only that the sub-agent stopped does not replace one
 * that says how it stopped.
 */
export function addReport(facts: SessionFacts, report: Omit<ToldState, "firstAt">): void {
  const known = facts.told.find(({ agentId }) => agentId === report.agentId);
  if (known === undefined) {
    if (facts.told.length < CALLS_MAX) facts.told.push({ ...report, firstAt: report.at });
    return;
  }
  known.callId ??= report.callId;
  if (report.state === "unknown" && known.state !== "running") return;
  known.at = report.at ?? known.at;
  if (known.state === "running") known.firstAt = report.at;
  [known.state, known.how, known.error] = [report.state, report.how, report.error];
}
