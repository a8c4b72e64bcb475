import type { HistoryState } from "../../contract/index.ts";
import { promptKey } from "../text.ts";

/** What an agent is told when a sub-agent or a shell in the background stops. */
export interface TaskNotice {
  readonly taskId: string;
  readonly callId: string | null;
  readonly state: HistoryState;
  readonly error: string | null;
  /** The same for every carrier of one notice. */
  readonly ref: string;
}

/**
 * Reads a notice. A text counts as one when it is nothing else from its first to its last character: a
 * prompt that merely mentions the element is a prompt. `isCarrier` is for rows whose own fields say that
 * they carry a notice; of those the beginning is enough.
 */
export function readTaskNotice(text: string, isCarrier: boolean): TaskNotice | null {
  const whole = text.trim();
  if (!whole.startsWith(START)) return null;
  if (!isCarrier && (!whole.endsWith(END) || whole.indexOf(END) !== whole.length - END.length)) return null;
  const taskId = field(whole, "task-id");
  if (taskId === null) return null;
  const status = field(whole, "status");
  const state = STATES.get(status ?? "") ?? "unknown";
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
