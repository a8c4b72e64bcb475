import type { HistoryState } from "../../contract/index.ts";
import { promptKey } from "../text.ts";

/** What an agent is told when a sub-agent or a shell in the background stops. */
export interface TaskNotice {
  readonly taskId: string;
  readonly callId: string | null;
  /** Null when it says nothing of how the task stands: an event of one that goes on. */
  readonly state: HistoryState | null;
  readonly error: string | null;
  /** The same for every carrier of one notice. */
  readonly ref: string;
}

/**
 * Reads a notice. A text counts as one when it is nothing else from its first to its last character: a
 * prompt that merely mentions the element is a prompt, but what a sub-agent answered may quote it. `isCarrier` is for rows whose own fields say that
 * they carry a notice; of those the beginning is enough.
 */
export function readTaskNotice(text: string, isCarrier: boolean): TaskNotice | null {
  const whole = text.trim();
  if (!whole.startsWith(START)) return null;
  if (!isCarrier && !isOneElement(whole)) return null;
  const taskId = field(whole, "task-id");
  if (taskId === null) return null;
  const status = field(whole, "status");
  // One that was cut short told how the task ended, in what is missing.
  const isEvent = status === null && whole.endsWith(END);
  const state = isEvent ? null : (STATES.get(status ?? "") ?? "unknown");
  return {
    taskId,
    callId: field(whole, "tool-use-id"),
    state,
    error: state === "failed" ? (field(whole, "result") ?? field(whole, "summary")) : null,
    ref: `notice:${promptKey(whole)}`,
  };
}

const START = "<task-notification>";
const END = "</task-notification>";

/** The element that begins at the start ends at the end. Inside its result others may begin and end. */
function isOneElement(text: string): boolean {
  if (!text.endsWith(END)) return false;
  const last = text.length - END.length;
  const resultFrom = text.indexOf("<result>");
  const resultTo = resultFrom < 0 ? -1 : text.indexOf("</result>", resultFrom);
  let depth = 0;
  for (const { 0: tag, index } of text.matchAll(/<\/?task-notification>/gu)) {
    if (index === last) break;
    depth += tag === START ? 1 : -1;
    if (depth > 0) continue;
    const isEnded = resultTo >= 0 && resultTo + "</result>".length <= index;
    const isInResult = resultFrom >= 0 && resultFrom < index && !isEnded;
    if (!isInResult) return false;
    depth = 1;
  }
  return true;
}

const STATES: ReadonlyMap<string, HistoryState> = new Map([
  ["completed", "completed"],
  ["failed", "failed"],
  ["killed", "cancelled"],
  ["stopped", "cancelled"],
  ["running", "running"],
]);

/** The first such element: what a sub-agent answered comes last and may hold anything. */
function field(text: string, name: string): string | null {
  const start = text.indexOf(`<${name}>`);
  if (start < 0) return null;
  const from = start + name.length + 2;
  const end = text.indexOf(`</${name}>`, from);
  const value = end < 0 ? "" : text.slice(from, end).trim();
  return value === "" ? null : value;
}
