import type { CallResult, SessionFacts, SpawnCall } from "../../facts.ts";
import { promptKey, timeOf } from "../../lines/text.ts";
import { asObject, asText, type JsonObject } from "../../lines/value.ts";
import { agentIdIn, readTaskTag, type TaskTag } from "./task-tag.ts";
import { shortLine } from "../../../text/fence.ts";

const ERROR_MAX = 2000;
/** More than a real session starts. Keeps a hostile database from filling the memory. */
const CALLS_MAX = 10_000;

/** Takes a call that starts a sub-agent, in its part's current state. */
export function foldCall(facts: SessionFacts, data: JsonObject, at: number | null): void {
  const callId = asText(data["callID"]);
  if (callId === null || facts.calls.length >= CALLS_MAX) return;
  const state = asObject(data["state"]) ?? {};
  const input = asObject(state["input"]) ?? {};
  const metadata = asObject(state["metadata"]) ?? {};
  const prompt = asText(input["prompt"]);
  const result = resultOf(state, metadata);
  const call: SpawnCall = {
    callId,
    tool: asText(data["tool"]) ?? "task",
    description: short(input["description"]),
    agentType: short(input["subagent_type"]),
    name: null,
    promptKey: prompt === null ? null : promptKey(prompt),
    background:
      input["background"] === true || metadata["background"] === true || result?.state === "running",
    many: false,
    at: timeOf(asObject(state["time"])?.["start"]) ?? at,
    agentId: asText(metadata["sessionId"]) ?? agentIdOf(state) ?? asText(input["task_id"]),
    taskIds: [],
    result,
    movedOn: false,
  };
  const isResumed = facts.calls.some((other) => other.agentId !== null && other.agentId === call.agentId);
  facts.calls.push(call);
  if (isResumed) toldByCall(facts, call);
}

/** Called when the session has said something new: missing results will no longer arrive. */
export function movedOn(facts: SessionFacts): void {
  for (const call of facts.calls) if (call.result === null) call.movedOn = true;
}

/** Takes a message to the session about a background sub-agent. */
export function toldOf(facts: SessionFacts, tag: TaskTag, at: number | null): void {
  const state = STATES[tag.state];
  const error = tag.error === null ? null : shortLine(tag.error, ERROR_MAX);
  told(facts, { agentId: tag.agentId, callId: null, state, how: "the message about its end", error, at });
}

const STATES = { running: "running", completed: "completed", error: "failed" } as const;

/** A sub-agent that was called again has several calls; the last one gives its state. */
function toldByCall(facts: SessionFacts, { agentId, callId, result }: SpawnCall): void {
  if (agentId === null || result === null) return;
  const { state, error, at } = result;
  told(facts, { agentId, callId, state, how: "the result of its last call", error, at });
}

function told(facts: SessionFacts, news: Omit<SessionFacts["told"][number], "firstAt">): void {
  const known = facts.told.find(({ agentId }) => agentId === news.agentId);
  if (known === undefined) {
    if (facts.told.length < CALLS_MAX) facts.told.push({ ...news, firstAt: news.at });
    return;
  }
  if (known.state === "running") known.firstAt = news.at;
  known.callId ??= news.callId;
  [known.state, known.how, known.error, known.at] = [news.state, news.how, news.error, news.at ?? known.at];
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
  return { ...outcome, at: end, durationMs, tokens: null, toolUseCount: null };
}

function outcomeOf(state: JsonObject, metadata: JsonObject): Pick<CallResult, "state" | "error"> | null {
  if (state["status"] === "completed") {
    const tag = readTaskTag(asText(state["output"]) ?? "");
    if (tag === null)
      return { state: metadata["background"] === true ? "running" : "completed", error: null };
    return { state: STATES[tag.state], error: tag.error === null ? null : shortLine(tag.error, ERROR_MAX) };
  }
  if (state["status"] !== "error") return null;
  const error = shortLine(asText(state["error"]) ?? "the call failed", ERROR_MAX);
  if (metadata["interrupted"] === true || /^(Tool execution aborted|Aborted)/u.test(error)) {
    return { state: "interrupted", error: null };
  }
  const isRefused = error === "Task cancelled" || /\brejected permission\b/u.test(error);
  return isRefused ? { state: "cancelled", error: null } : { state: "failed", error };
}

function short(value: unknown): string | null {
  const text = asText(value);
  return text === null ? null : shortLine(text, 200);
}
