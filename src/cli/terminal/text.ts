import { folded, visible, withoutTerminalSequences } from "../../text/fence.ts";

/** Makes another program's text safe for a terminal: removes escape sequences and control characters. */
export function harmless(text: string): string {
  return visible(text);
}

/** Makes a text safe and folds its white space into single spaces, so that it fits on one line. */
export function cleanLine(text: string): string {
  return folded(harmless(text));
}

/** Formats an age in one unit: `now`, `4 s`, `12 min`, `2 h`, `3 d`. */
export function age(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  if (seconds < 1) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function ago(ms: number): string {
  const since = age(ms);
  return since === "now" ? "just now" : `${since} ago`;
}

/** Formats an amount: `$2.10`; a dash if it is unknown or zero. */
export function usd(amount: number | null): string {
  if (!amount) return "-";
  return amount < 0.005 ? "<$0.01" : `$${amount.toFixed(2)}`;
}

export function clock(at: number): string {
  return new Date(at).toTimeString().slice(0, 8);
}

/** Returns how many terminal columns a text takes; escape sequences take none. */
export function columnsOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let columns = 0;
  for (const { segment } of segmenter.segment(withoutTerminalSequences(text)))
    columns += WIDE.test(segment) ? 2 : 1;
  return columns;
}

export function padTo(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - columnsOf(text)));
}

/** Cuts a text to a number of columns, with an ellipsis. The text must not contain escape sequences. */
export function clip(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text;
  if (columns <= 0) return "";
  let cut = "";
  let used = 0;
  for (const { segment } of segmenter.segment(text)) {
    const step = WIDE.test(segment) ? 2 : 1;
    if (used + step > columns - 1) break;
    cut += segment;
    used += step;
  }
  return `${cut.trimEnd()}…`;
}

const WIDE =
  /\p{Emoji_Presentation}|\ufe0f|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;
const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });
