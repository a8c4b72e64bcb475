import type { CallResult } from "../../facts.ts";
import { CALLS_MAX, newCall, newResult } from "../../lines/spawn-call.ts";
import { promptKey, shortText, timeOf } from "../../lines/text.ts";
import { asObject, asText, firstText, type JsonObject } from "../../lines/value.ts";
import { responseText } from "./content.ts";
import { addEntry, callOf, replaceEntry } from "./entries.ts";
import { type GeminiFold, givenCall } from "./notes.ts";
import { shortLine } from "../../../text/fence.ts";

const ERROR_MAX = 2000;

/** A call with any other status is still in progress. */
const OVER: ReadonlySet<string> = new Set(["success", "error", "cancelled"]);

export type CallState = "success" | "error" | "cancelled" | null;

export interface FoldedCall {
  readonly tool: string;
  readonly state: CallState;
  readonly error: string | null;
  readonly isNews: boolean;
}

/** Adds a call, and its result if the call is over. Records repeat, so known calls are not added again. */
export function foldToolCall(
  fold: GeminiFold,
  call: JsonObject,
  messageAt: number | null,
): FoldedCall | null {
  const id = asText(call["id"]);
  if (id === null) return null;
  const at = timeOf(call["timestamp"]) ?? messageAt;
  const status = asText(call["status"]) ?? "";
  const state = OVER.has(status) ? (status as Exclude<CallState, null>) : null;
  let isNews = giveCall(fold, call, at);
  const text = resultText(call);
  if (state !== null) isNews = giveResult(fold, { call, text, ok: state === "success", at }) || isNews;
  const error = state === "success" || state === null ? null : shortLine(text, ERROR_MAX) || status;
  foldSpawn(fold, { call, id, state, error, at });
  return { tool: asText(call["name"]) ?? "a tool", state, error, isNews };
}

/** Adds the call's entry. Returns false when it was already added. */
export function giveCall(fold: GeminiFold, call: JsonObject, at: number | null): boolean {
  const id = asText(call["id"]);
  if (id === null) return false;
  const given = givenCall(fold.notes, id);
  if (given.called) return false;
  given.called = true;
  fold.facts.toolUseCount += 1;
  // The same call may be in several messages, so its refs are made from its id.
  addEntry(fold, { ref: `call:${id}`, author: "agent", ...callOf(call, fold.textMax), at });
  return true;
}

/**
 * Adds the result's entry. Returns false when nothing is new. An entry that was added without a text is
 * replaced when the text is known.
 */
export function giveResult(
  fold: GeminiFold,
  { call, text, ok, at }: { call: JsonObject; text: string; ok: boolean; at: number | null },
): boolean {
  const id = asText(call["id"]);
  if (id === null) return false;
  const given = givenCall(fold.notes, id);
  const isAgain = given.done;
  if (isAgain && (!given.isEmpty || text === "")) return false;
  [given.done, given.isEmpty] = [true, text === ""];
  const tool = asText(call["name"]);
  const body = { text, callId: id, ok, ...(tool === null ? {} : { tool }) };
  const give = isAgain ? replaceEntry : addEntry;
  give(fold, { ref: `result:${id}`, author: "tool", kind: "toolResult", body, at });
  return !isAgain;
}

function resultText(call: JsonObject): string {
  return responseText(call["result"]) || (asText(call["resultDisplay"]) ?? "");
}

interface Recorded {
  readonly call: JsonObject;
  readonly id: string;
  readonly state: CallState;
  readonly error: string | null;
  readonly at: number | null;
}

function foldSpawn({ facts }: GeminiFold, { call, id, state, error, at }: Recorded): void {
  const agentId = asText(call["agentId"]);
  const known = facts.calls.find(({ callId }) => callId === id);
  if (known !== undefined) {
    known.agentId ??= agentId;
    known.result ??= resultOf(state, error, at);
    return;
  }
  if (agentId === null || facts.calls.length >= CALLS_MAX) return;
  const input = asObject(call["args"]) ?? {};
  const prompt = firstText(input, "objective", "prompt", "query");
  const tool = asText(call["name"]) ?? "a tool";
  const spawn = newCall({
    callId: id,
    tool,
    description: shortText(input["description"]) ?? shortText(prompt) ?? shortText(call["description"]),
    agentType: shortText(input["agent_name"]) ?? shortText(tool),
    promptKey: prompt === null ? null : promptKey(prompt),
    at,
    agentId,
    result: resultOf(state, error, at),
  });
  facts.calls.push(spawn);
}

const STATES = { success: "completed", error: "failed", cancelled: "cancelled" } as const;

function resultOf(state: CallState, error: string | null, at: number | null): CallResult | null {
  return state === null ? null : newResult({ state: STATES[state], error, at });
}
