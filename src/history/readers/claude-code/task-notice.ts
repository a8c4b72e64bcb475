import type { HistoryState } from "../../../contract/index.ts";
import { promptKey } from "../../lines/text.ts";

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
 * Reads the notices of a row. `isCarrier` is for rows that are known to carry them: there the beginning is
 * enough, and the program's own words may follow. Any other text counts only when it is nothing but notices:
 * a prompt that mentions the element is a prompt, while a sub-agent's answer inside a notice may quote it.
 */
export function readTaskNotices(text: string, isCarrier: boolean): TaskNotice[] {
  const { elements, isWhole } = elementsOf(text.trim());
  if (elements.length === 0) {
    const cut = isCarrier ? noticeOf(text.trim()) : null;
    return cut === null ? [] : [cut];
  }
  if (!isWhole && !isCarrier) return [];
  return elements.map(noticeOf).filter((notice) => notice !== null);
}

/** Whether a text begins with a whole notice. */
export function beginsWithNotice(text: string): boolean {
  const whole = text.trim();
  return whole.startsWith(START) && endOfElement(whole) !== null;
}

function noticeOf(element: string): TaskNotice | null {
  if (!element.startsWith(START)) return null;
  const taskId = field(element, "task-id");
  if (taskId === null) return null;
  const status = field(element, "status");
  // An element that was cut short said in its missing part how the task ended.
  const isEvent = status === null && element.endsWith(END);
  const state = isEvent ? null : (STATES.get(status ?? "") ?? "unknown");
  return {
    taskId,
    callId: field(element, "tool-use-id"),
    state,
    error: state === "failed" ? (field(element, "result") ?? field(element, "summary")) : null,
    ref: `notice:${promptKey(element)}`,
  };
}

const START = "<task-notification>";
const END = "</task-notification>";
/** More than one row ever carries; a hostile file must not fill the memory. */
const ELEMENTS_MAX = 100;
/** What versions of early 2026 wrote after an element. */
const OWN_TAIL =
  /^(?:Read the output file to retrieve the (?:result|output)|Full transcript available at):[^\n]*\s*/u;

/** The elements at the beginning of a text, and whether there is nothing else in it. */
function elementsOf(whole: string): { elements: string[]; isWhole: boolean } {
  const elements: string[] = [];
  let rest = whole;
  while (rest.startsWith(START) && elements.length < ELEMENTS_MAX) {
    const end = endOfElement(rest);
    if (end === null) break;
    elements.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart().replace(OWN_TAIL, "");
  }
  return { elements, isWhole: rest === "" };
}

/** Where the element ends that a text begins with. Inside its result others may begin and end. */
function endOfElement(text: string): number | null {
  let depth = 0;
  let result: "before" | "inside" | "after" = "before";
  for (const { 0: tag, index } of text.matchAll(/<\/?(?:task-notification|result)>/gu)) {
    if (tag === "<result>") {
      if (result === "before") result = "inside";
    } else if (tag === "</result>") {
      if (result === "inside") result = "after";
    } else if (tag === START) depth += 1;
    else {
      depth -= 1;
      if (depth > 0) continue;
      if (result !== "inside") return index + END.length;
      depth = 1;
    }
  }
  return text.endsWith(END) ? text.length : null;
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
