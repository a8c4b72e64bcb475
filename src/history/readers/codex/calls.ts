import type { SpawnCall, ToldState } from "../../facts.ts";
import { addReport, CALLS_MAX, newCall, newResult } from "../../lines/spawn-call.ts";
import type { HistoryState } from "../../../contract/index.ts";
import { promptKey, shortText } from "../../lines/text.ts";
import { asList, asObject, asText, type JsonObject } from "../../lines/value.ts";
import { errorText, textOf } from "./entries.ts";
import type { CodexFold, OpenCall } from "./notes.ts";
import { parsedObject } from "../../lines/parse-json.ts";
import { shortLine } from "../../../text/fence.ts";

const ERROR_MAX = 2000;
/** Every sub-agent of Codex works in the background. */
const SPAWN = { tool: "spawn_agent", background: true } as const;

export function called(
  fold: CodexFold,
  callId: string,
  { input, at }: { input: JsonObject; at: number | null },
): void {
  const prompt = asText(input["message"]) ?? (textOf(input["items"]) || null);
  const name = asText(input["task_name"]);
  // Versions with task names encrypt the prompt, so a key made from it would match no sub-agent's prompt.
  const key = name !== null || prompt === null ? null : promptKey(prompt);
  const call = newCall({
    ...SPAWN,
    callId,
    at,
    description: shortText(name ?? prompt),
    agentType: asText(input["agent_type"]),
    name: shortText(name),
    promptKey: key,
  });
  if (name !== null) call.taskIds.push(`${fold.notes.path}/${name}`);
  if (addCall(fold, call)) fold.notes.unanswered.push(callId);
}

function addCall({ facts, notes }: CodexFold, call: SpawnCall): boolean {
  // Spawn calls in copied rows belong to the session that the rows were copied from.
  if (notes.copied !== null || facts.calls.length >= CALLS_MAX) return false;
  facts.calls.push(call);
  return true;
}

/** Records the result of a call that started, awaited or closed a sub-agent. */
export function returned(
  fold: CodexFold,
  { callId, text, open, at }: { callId: string; text: string; open: OpenCall | null; at: number | null },
): void {
  const call = fold.facts.calls.findLast((other) => other.callId === callId && !other.many);
  if (call !== undefined) {
    fold.notes.unanswered = fold.notes.unanswered.filter((id) => id !== callId);
    foldLaunch(call, { answer: parsedObject(text), text, at });
  } else if (open?.tool === "wait_agent" || open?.tool === "wait") {
    foldStates(fold, asObject(parsedObject(text)?.["status"]), { how: "wait_agent's answer", at });
  } else if (open?.tool === "close_agent" && open.targets[0] !== undefined) {
    const states = { [open.targets[0]]: parsedObject(text)?.["previous_status"] };
    foldStates(fold, states, { how: "close_agent's answer", at });
  }
}

function foldLaunch(
  call: SpawnCall,
  { answer, text, at }: { answer: JsonObject | null; text: string; at: number | null },
): void {
  const agentId = asText(answer?.["agent_id"])?.toLowerCase() ?? null;
  const path = asText(answer?.["task_name"]);
  call.agentId ??= agentId;
  if (path !== null) addTask(call, path);
  const isLaunched = agentId !== null || path !== null || call.agentId !== null;
  const error = isLaunched ? null : shortLine(text, ERROR_MAX) || "it was not started";
  call.result = newResult({ state: isLaunched ? "running" : "failed", error, at });
}

/** Records which call started a sub-agent. Adds the call if the file does not contain it. */
export function linked(
  fold: CodexFold,
  link: { callId: string | null; agentId: string | null; path?: string | null; at: number | null },
): void {
  const agentId = link.agentId?.toLowerCase() ?? null;
  if (agentId === null || link.callId === null) return;
  const { calls } = fold.facts;
  const known = calls.findLast(({ callId, many }) => callId === link.callId && !many);
  if (known !== undefined) {
    known.agentId ??= agentId;
    if (link.path) addTask(known, link.path);
    return;
  }
  if (calls.some((call) => call.agentId === agentId || call.taskIds.includes(agentId))) return;
  const cell = cellOf(fold, link.callId, link.at);
  if (cell === null) {
    const name = link.path ? link.path.slice(link.path.lastIndexOf("/") + 1) : null;
    const taskIds = link.path ? [link.path] : [];
    addCall(fold, newCall({ ...SPAWN, callId: link.callId, at: link.at, agentId, taskIds, name }));
  } else {
    addTask(cell, agentId);
    if (link.path) addTask(cell, link.path);
  }
}

/** In code mode the file has no spawn calls. The call that ran the code serves as one for all sub-agents. */
function cellOf(fold: CodexFold, callId: string, at: number | null): SpawnCall | null {
  const { facts, notes } = fold;
  const isOpen = notes.open.some(({ id }) => id === callId);
  const cellId = isOpen ? callId : notes.cellId;
  if (cellId === null) return null;
  const known = facts.calls.findLast((call) => call.callId === cellId);
  if (known !== undefined) return known;
  const call = newCall({ ...SPAWN, tool: "exec", callId: cellId, at, many: true });
  return addCall(fold, call) ? call : null;
}

function addTask(call: SpawnCall, id: string): void {
  if (!call.taskIds.includes(id) && call.taskIds.length < CALLS_MAX) call.taskIds.push(id);
}

/** Records the states that the wait and close tools return: one for each sub-agent's id or path. */
export function foldStates(
  fold: CodexFold,
  states: JsonObject | null,
  { how, at }: { how: string; at: number | null },
): void {
  for (const [agentId, value] of Object.entries(states ?? {}).slice(0, CALLS_MAX)) {
    const state = stateOf(value);
    const id = agentOf(fold, agentId) ?? agentId.toLowerCase();
    if (state !== null) report(fold, { agentId: id, callId: null, how, at, ...state });
  }
}

/** Newer versions name a sub-agent by its path. The spawn call with this path has the sub-agent's id. */
function agentOf({ facts }: CodexFold, name: string): string | null {
  const call = facts.calls.findLast(({ taskIds }) => taskIds.includes(name));
  if (call === undefined || !call.many) return call?.agentId ?? null;
  // One code call may start several sub-agents. In its `taskIds` each id is followed by its path.
  const before = name.startsWith("/") ? call.taskIds[call.taskIds.indexOf(name) - 1] : undefined;
  return before === undefined || before.startsWith("/") ? null : before;
}

/** Records a sub-agent's report that is not a tool result. Returns its text, or null if it is no report. */
export function notified(fold: CodexFold, text: string, at: number | null): string | null {
  if (text.startsWith("Message Type: FINAL_ANSWER\n")) {
    const sender = /^Sender: (\S{1,500})$/mu.exec(text.slice(0, 2000))?.[1] ?? "";
    const agentId = agentOf(fold, sender);
    const state = stateOfReport(text.slice(text.indexOf("\nPayload:\n") + 10));
    if (agentId !== null && state !== null) {
      report(fold, { agentId, callId: null, how: "its own report", at, ...state });
    }
    return text;
  }
  const inside = /^<subagent_notification>([\s\S]*)<\/subagent_notification>$/u.exec(text)?.[1];
  const notice = inside === undefined ? null : parsedObject(inside.trim());
  const agentId = asText(notice?.["agent_path"]) ?? asText(notice?.["agent_id"]);
  if (notice === null || agentId === null) return null;
  foldStates(fold, { [agentId]: notice["status"] }, { how: "a sub-agent notification", at });
  const status = asObject(notice["status"]);
  const error = asText(status?.["errored"]);
  return asText(status?.["completed"]) ?? (error === null ? text : errorText(error));
}

type Told = Pick<ToldState, "state" | "error">;

function stateOf(value: unknown): Told | null {
  if (typeof value === "string") {
    const state = STATES.get(value);
    return state === undefined ? null : { state, error: null };
  }
  const fields = asObject(value);
  if (fields === null) return null;
  if ("completed" in fields) return { state: "completed", error: null };
  if (!("errored" in fields)) return null;
  return {
    state: "failed",
    error: shortLine(errorText(asText(fields["errored"]) ?? "it failed"), ERROR_MAX),
  };
}

/** `shutdown` says that the sub-agent ended, but not how. */
const STATES: ReadonlyMap<string, HistoryState> = new Map([
  ["pending_init", "running"],
  ["running", "running"],
  ["interrupted", "interrupted"],
  ["completed", "completed"],
  ["errored", "failed"],
  ["shutdown", "unknown"],
]);

/** Derives the state from a sub-agent's mail. Any text but Codex's fixed phrases is a completed answer. */
function stateOfReport(payload: string): Told | null {
  if (payload.startsWith("Agent errored: ")) {
    const error = payload.slice("Agent errored: ".length).split("\n\nThis agent's turn failed.")[0] ?? "";
    return { state: "failed", error: shortLine(errorText(error), ERROR_MAX) };
  }
  if (payload === "Agent was not found.") return null;
  return { state: payload === "Agent shut down." ? "unknown" : "completed", error: null };
}

export function report({ facts, notes }: CodexFold, news: Omit<ToldState, "firstAt">): void {
  if (notes.copied === null) addReport(facts, news);
}

export function targetsOf(input: JsonObject): string[] {
  const ids = [input["target"], input["id"], ...asList(input["targets"]), ...asList(input["ids"])];
  return ids.flatMap((id) => asText(id)?.toLowerCase() ?? []).slice(0, 100);
}
