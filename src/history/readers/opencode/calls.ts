import type { CallResult, SessionFacts, SpawnCall } from "../../facts.ts";
import { addReport, CALLS_MAX, newCall, newResult } from "../../lines/spawn-call.ts";
import { promptKey, shortText, timeOf } from "../../lines/text.ts";
import { asObject, asText, type JsonObject } from "../../lines/value.ts";
import { agentIdIn, readTaskTag, type TaskTag } from "./task-tag.ts";
import { shortLine } from "../../../text/fence.ts";

const ERROR_MAX = 2000;

/** Adds a call that starts a sub-agent, with its result if there is one by now. */
export function foldCall(facts: SessionFacts, data: JsonObject, at: number | null): void {
  const callId = asText(data["callID"]);
  if (callId === null || facts.calls.length >= CALLS_MAX) return;
  const state = asObject(data["state"]) ?? {};
  const input = asObject(state["input"]) ?? {};
  const metadata = asObject(state["metadata"]) ?? {};
  const prompt = asText(input["prompt"]);
  const result = resultOf(state, metadata);
  const call = newCall({
    callId,
    tool: asText(data["tool"]) ?? "task",
    description: shortText(input["description"]),
    agentType: shortText(input["subagent_type"]),
    promptKey: prompt === null ? null : promptKey(prompt),
    background:
      input["background"] === true || metadata["background"] === true || result?.state === "running",
    at: timeOf(asObject(state["time"])?.["start"]) ?? at,
    agentId: asText(metadata["sessionId"]) ?? agentIdOf(state) ?? asText(input["task_id"]),
    result,
  });
  const isResumed = facts.calls.some((other) => other.agentId !== null && other.agentId === call.agentId);
  facts.calls.push(call);
  if (isResumed) reportCall(facts, call);
}

/** Marks calls without a result: the session has said something new, so no result will arrive. */
export function movedOn(facts: SessionFacts): void {
  for (const call of facts.calls) if (call.result === null) call.movedOn = true;
}

/** Records the state of a background sub-agent, from a message that the session got. */
export function reportTag(facts: SessionFacts, tag: TaskTag, at: number | null): void {
  const state = STATES[tag.state];
  const error = shortText(tag.error, ERROR_MAX);
  addReport(facts, {
    agentId: tag.agentId,
    callId: null,
    state,
    how: "the message about its end",
    error,
    at,
  });
}

const STATES = { running: "running", completed: "completed", error: "failed" } as const;

/** A sub-agent that was called again has several calls. The result of its last call gives its state. */
function reportCall(facts: SessionFacts, { agentId, callId, result }: SpawnCall): void {
  if (agentId === null || result === null) return;
  const { state, error, at } = result;
  addReport(facts, { agentId, callId, state, how: "the result of its last call", error, at });
}

function agentIdOf(state: JsonObject): string | null {
  const text = asText(state["output"]) ?? asText(state["error"]) ?? "";
  return readTaskTag(text)?.agentId ?? agentIdIn(text);
}

function resultOf(state: JsonObject, metadata: JsonObject): CallResult | null {
  const outcome = outcomeOf(state, metadata);
  if (outcome === null) return null;
  const times = asObject(state["time"]);
  const [start, end] = [timeOf(times?.["start"]), timeOf(times?.["end"])];
  const durationMs = start === null || end === null || outcome.state === "running" ? null : end - start;
  return newResult({ ...outcome, at: end, durationMs });
}

function outcomeOf(state: JsonObject, metadata: JsonObject): Pick<CallResult, "state" | "error"> | null {
  if (state["status"] === "completed") {
    const tag = readTaskTag(asText(state["output"]) ?? "");
    if (tag === null)
      return { state: metadata["background"] === true ? "running" : "completed", error: null };
    return { state: STATES[tag.state], error: shortText(tag.error, ERROR_MAX) };
  }
  if (state["status"] !== "error") return null;
  const error = shortLine(asText(state["error"]) ?? "the call failed", ERROR_MAX);
  if (metadata["interrupted"] === true || /^(Tool execution aborted|Aborted)/u.test(error)) {
    return { state: "interrupted", error: null };
  }
  const isRefused = error === "Task cancelled" || /\brejected permission\b/u.test(error);
  return isRefused ? { state: "cancelled", error: null } : { state: "failed", error };
}
