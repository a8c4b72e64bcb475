import type { HistoryState } from "../../../contract/index.ts";
import { promptKey } from "../../lines/text.ts";

/** The message that an agent gets when a background sub-agent or shell stops. */
export interface TaskNotice {
  readonly taskId: string;
  readonly callId: string | null;
  /** Null when the notice reports an event of a task that continues. */
  readonly state: HistoryState | null;
  readonly error: string | null;
  /** The same in all rows that repeat this notice. */
  readonly ref: string;
}

/**
 * Reads the notices in a row. A row that is known to carry notices (`isCarrier`) only has to begin with one;
 * Claude Code's own words may follow. Any other text must consist of notices only, because a prompt that
 * quotes a notice is still a prompt.
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

export function beginsWithNotice(text: string): boolean {
  const whole = text.trim();
  return whole.startsWith(START) && endOfElement(whole) !== null;
}

function noticeOf(element: string): TaskNotice | null {
  if (!element.startsWith(START)) return null;
  const taskId = textInside(element, "task-id");
  if (taskId === null) return null;
  const status = textInside(element, "status");
  // A complete notice without a status reports an event. A truncated one may have lost its status.
  const isEvent = status === null && element.endsWith(END);
  const state = isEvent ? null : (STATES.get(status ?? "") ?? "unknown");
  return {
    taskId,
    callId: textInside(element, "tool-use-id"),
    state,
    error: state === "failed" ? (textInside(element, "result") ?? textInside(element, "summary")) : null,
    ref: `notice:${promptKey(element)}`,
  };
}

const START = "<task-notification>";
const END = "</task-notification>";
/** No real row carries this many notices. The limit keeps a hostile file from filling the memory. */
const ELEMENTS_MAX = 100;
/** The words that Claude Code versions of early 2026 wrote after a notice. */
const OWN_TAIL =
  /^(?:Read the output file to retrieve the (?:result|output)|Full transcript available at):[^\n]*\s*/u;

/** Returns the elements at the beginning of a text, and whether nothing else follows them. */
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

/** Returns where the first element ends. The `<result>` inside it may contain other elements. */
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

/**
 * Returns the text of the first field with this name. Later ones may be part of the sub-agent's answer, which
 * comes last and may contain anything.
 */
export function textInside(text: string, name: string): string | null {
  const start = text.indexOf(`<${name}>`);
  if (start < 0) return null;
  const from = start + name.length + 2;
  const end = text.indexOf(`</${name}>`, from);
  const value = end < 0 ? "" : text.slice(from, end).trim();
  return value === "" ? null : value;
}
