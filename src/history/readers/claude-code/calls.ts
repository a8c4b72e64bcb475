import type { CallResult, SpawnCall, ToldState } from "../../facts.ts";
import { addReport, CALLS_MAX, newCall } from "../../lines/spawn-call.ts";
import { promptKey, shortText } from "../../lines/text.ts";
import { asNumber, asObject, asText, type JsonObject, pushBounded } from "../../lines/value.ts";
import type { Line } from "./notes.ts";
import type { TaskNotice } from "./task-notice.ts";
import { INTERRUPTS, textOf } from "./user-row.ts";
import { shortLine } from "../../../text/fence.ts";

/** Tools that start sub-agents. `Workflow` starts several. */
const SPAWNING: ReadonlySet<string> = new Set(["Agent", "Task", "Workflow"]);
const ERROR_MAX = 2000;

export function called(line: Line, block: JsonObject, at: number | null): void {
  const tool = asText(block["name"]) ?? "";
  const callId = asText(block["id"]);
  if (!SPAWNING.has(tool) || callId === null || line.facts.calls.length >= CALLS_MAX) return;
  const input = asObject(block["input"]) ?? {};
  const prompt = asText(input["prompt"]);
  const isWorkflow = tool === "Workflow";
  const call = newCall({
    callId,
    tool,
    description: shortText(input["description"] ?? input["name"]),
    agentType: shortText(input["subagent_type"]),
    name: isWorkflow ? null : shortText(input["name"]),
    promptKey: prompt === null ? null : promptKey(prompt),
    background: input["run_in_background"] === true || isWorkflow,
    many: isWorkflow,
    at,
    taskIds: isWorkflow ? [asText(input["resumeFromRunId"])].filter((id) => id !== null) : [],
  });
  line.facts.calls.push(call);
  line.notes.unanswered.push(callId);
}

/** Called when the turn is over. Gives up unanswered calls, except background calls, which may still end. */
export function abandoned(line: Line): void {
  if (line.notes.unanswered.length === 0) return;
  const ids = new Set(line.notes.unanswered);
  const left = line.facts.calls.filter(({ callId, background }) => ids.has(callId) && !background);
  for (const call of left) {
    call.movedOn = true;
    ids.delete(call.callId);
  }
  line.notes.unanswered = [...ids];
}

export interface ToolResult {
  readonly block: JsonObject;
  /** The row's `toolUseResult`, if the row has exactly one result. */
  readonly structured: unknown;
  /** True if the result's row says that the request was interrupted. */
  readonly isInterrupted: boolean;
  readonly at: number | null;
}

/** Records the result of a call that started, queried or stopped a sub-agent. */
export function returned(line: Line, result: ToolResult): void {
  const callId = asText(result.block["tool_use_id"]);
  const call = line.facts.calls.findLast((other) => other.callId === callId);
  if (call === undefined) {
    reportedByTool(line, result);
    return;
  }
  line.notes.unanswered = line.notes.unanswered.filter((id) => id !== callId);
  const structured = asObject(result.structured);
  const text = textOf(result.block["content"]);
  call.agentId ??= asText(structured?.["agentId"]) ?? agentIdIn(text);
  for (const id of taskIdsIn(call, structured, text)) if (!call.taskIds.includes(id)) call.taskIds.push(id);
  call.result = {
    ...outcome(result, text),
    at: result.at,
    durationMs: asNumber(structured?.["totalDurationMs"]),
    tokens: asNumber(structured?.["totalTokens"]),
    toolUseCount: asNumber(structured?.["totalToolUseCount"]),
  };
  call.background ||= call.result.state === "running";
}

/** Updates a sub-agent's call from a row that shows the sub-agent working. */
export function progressed(
  line: Line,
  { callId, agentId, at }: { callId: string | null; agentId: string | null; at: number | null },
): void {
  const call = line.facts.calls.findLast((other) => other.callId === callId);
  if (call === undefined || call.many) return;
  call.agentId ??= agentId;
  call.progressAt = at ?? call.progressAt ?? call.at;
}

/** Uses the structured result. Files of sub-agents have none, so there the result's text is used. */
function outcome(
  { block, structured, isInterrupted }: ToolResult,
  text: string,
): Pick<CallResult, "state" | "error"> {
  const plain = typeof structured === "string" ? structured : null;
  if (INTERRUPTS.has(text.trim()) || (plain !== null && INTERRUPTS.has(plain.trim())))
    return { state: "interrupted", error: null };
  if (plain === "User rejected tool use") return { state: "cancelled", error: null };
  if (block["is_error"] === true || plain?.startsWith("Error: ")) {
    if (isInterrupted) return { state: "interrupted", error: null };
    return { state: "failed", error: shortLine(text || (plain ?? ""), ERROR_MAX) };
  }
  const status = asText(asObject(structured)?.["status"]);
  if (status === "failed" || status === "timeout")
    return { state: "failed", error: shortLine(text, ERROR_MAX) || status };
  if (asObject(structured)?.["isAsync"] === true || LAUNCHED.has(status ?? ""))
    return { state: "running", error: null };
  if (
    status === null &&
    /^Async agent launched successfully|^Workflow (started|launched)|^Task ID: /u.test(text)
  ) {
    return { state: "running", error: null };
  }
  return { state: "completed", error: null };
}

const LAUNCHED: ReadonlySet<string> = new Set(["async_launched", "launched", "running", "teammate_spawned"]);

/** Finds the agent id in the line that Claude Code adds before or after the sub-agent's own text. */
function agentIdIn(text: string): string | null {
  const launched = /^Async agent launched successfully[^\n]*\n+agentId: ([\w-]{1,80}) \(internal/u.exec(text);
  if (launched !== null) return launched[1] as string;
  const ends = [...text.slice(-2000).matchAll(/^agentId: ([\w-]{1,80}) \(use SendMessage/gmu)];
  return ends.at(-1)?.[1] ?? null;
}

function taskIdsIn(call: SpawnCall, structured: JsonObject | null, text: string): string[] {
  if (!call.many) return [];
  const fromText = [/^Task ID: (\S{1,100})/mu, /^Run ID: (\S{1,100})/mu].map(
    (rule) => rule.exec(text.slice(0, 4000))?.[1],
  );
  const ids = [structured?.["taskId"], structured?.["runId"], structured?.["task_id"], ...fromText];
  return ids.map(asText).filter((id) => id !== null);
}

/** `TaskOutput` reports a background task's state, `TaskStop` that the task was stopped. */
function reportedByTool(line: Line, { structured, at }: ToolResult): void {
  const fields = asObject(structured);
  const task = asObject(fields?.["task"]);
  const asked = asText(task?.["task_id"]);
  const state = asText(task?.["status"]);
  if (asked !== null && task?.["task_type"] === "local_agent") {
    if (state === "completed" || state === "failed" || state === "running") {
      report(line, { agentId: asked, callId: null, state, how: "TaskOutput's answer", error: null, at });
    }
    return;
  }
  const stopped = asText(fields?.["task_id"]);
  if (stopped === null) return;
  const end = { state: "cancelled", how: "TaskStop's answer", at } as const;
  overAll(line, { taskId: stopped, callId: null }, end);
  if (fields?.["task_type"] === "local_agent")
    report(line, { agentId: stopped, callId: null, error: null, ...end });
}

/** Returns whether the notice is new. Several rows may carry the same notice. */
export function notified(line: Line, notice: TaskNotice, at: number | null): boolean {
  const { taskId, callId, state, ref } = notice;
  const isNew = !line.notes.notices.includes(ref);
  if (isNew) pushBounded(line.notes.notices, ref, 64);
  if (state === null) return isNew;
  const how = "a task notification";
  const error = notice.error === null ? null : shortLine(notice.error, ERROR_MAX);
  overAll(line, notice, { state, how, at });
  report(line, { agentId: taskId, callId, state, how, error, at });
  // Only sub-agents and workflows are subtracted: Claude Code does not count background shells.
  if (isNew && state !== "running" && line.facts.calls.some((call) => isAbout(notice, call))) {
    line.facts.backgroundCount = Math.max(0, line.facts.backgroundCount - 1);
  }
  return isNew;
}

function isAbout({ taskId, callId }: TaskNotice, call: SpawnCall): boolean {
  return call.callId === callId || call.agentId === taskId || call.taskIds.includes(taskId);
}

/** Records the end of a whole workflow, which is reported under the id of its task or its call. */
function overAll(
  line: Line,
  { taskId, callId }: Pick<TaskNotice, "taskId" | "callId">,
  over: NonNullable<SpawnCall["over"]>,
): void {
  const call = line.facts.calls.findLast(
    (other) => other.many && (other.callId === callId || other.taskIds.includes(taskId)),
  );
  if (call !== undefined) call.over = over;
}

/** Every report updates `at`, even a report that does not change the state. */
function report(line: Line, news: Omit<ToldState, "firstAt">): void {
  const known = line.facts.told.find(({ agentId }) => agentId === news.agentId);
  if (known !== undefined) known.at = news.at ?? known.at;
  addReport(line.facts, news);
}
