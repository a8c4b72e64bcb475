import { byteLength } from "./quantity.ts";
import { visible } from "./visible.ts";
import { firstBytes, firstChars, folded } from "./cut.ts";

/**
 * The one fence: text of another session is data, and passes through here wherever it enters a prompt or
 * the reply of a tool.
 */

/** A field that somebody else may influence: one line, capped, unable to be a command, a path or a fence. */
export function oneLine(text: string, max = 120): string {
  const read = text.slice(0, max * readAhead);
  const line = harmless(folded(visible(read)))
    .replaceAll("<!--", String.raw`<\!--`)
    .replaceAll("`", "'")
    .replace(bareAtOrLast, String.raw`\@`);
  if (line.length <= max && read.length === text.length) return line;
  return `${withoutDanglingAt(firstChars(line, max - 1))}…`;
}

/** Claude Code and Gemini expand `@path` in a prompt, also inside fences; neither expands `\@path`. */
export function escapeAt(text: string): string {
  return text.replace(bareAt, String.raw`\@`);
}

/**
 * Wraps another session's text so that it cannot pass for anything else. The id is one that its author
 * cannot know. `bytes` is the size of the whole text, of which at most the first `bytesMax` are kept.
 */
export function fence(
  text: string,
  id: string,
  bytesMax = 4096,
): { text: string; cut: boolean; bytes: number } {
  const read = text.slice(0, bytesMax * readAhead);
  const clean = asData(read).replace(/^\n+/, "").trimEnd();
  const kept = firstBytes(clean, bytesMax);
  const bytes = byteLength(clean) + byteLength(text.slice(read.length));
  const body = kept === "" ? "" : `${kept.trimEnd()}\n`;
  return {
    text: `<child-output id="${id}">\n${body}</child-output id="${id}">`,
    cut: bytes > byteLength(kept),
    bytes,
  };
}

/** Text that can neither close a fence, nor be a mark of ours, nor name a file, nor hide a character. */
export function asData(text: string): string {
  return escapeAt(harmless(visible(text)));
}

/** Undoes what a line of ours would be mistaken for: a delivery id counts only where the daemon wrote it. */
export function withoutTriggerLines(text: string): string {
  return text.replace(deliveryComment, String.raw`<\!--`);
}

/**
 * The words of one who may instruct the reader stay as they are, code included; only a whole line
 * that would count as a delivery is undone.
 */
export function withoutDeliveryLines(text: string): string {
  return text.replace(deliveryLine, String.raw`$1<\!--`);
}

/** The same for words of another session or system: nor does a line begin as the daemon's own do. */
export function withoutOurLines(text: string): string {
  return withoutDeliveryLines(text).replace(ourLine, String.raw`$1$2\[`);
}

/** The end of a field that was cut: neither a space nor an at sign that the next character would complete. */
function withoutDanglingAt(line: string): string {
  let end = line.length;
  while (end > 0 && (line[end - 1] === " " || (line[end - 1] === "@" && line[end - 2] !== "\\"))) end -= 1;
  return line.slice(0, end);
}

function harmless(text: string): string {
  return withoutTriggerLines(text).replace(fenceMark, String.raw`<\$1`);
}

/** How much more is read than is kept, in characters: enough for what gets stripped, bounded for a flood. */
const readAhead = 64;

const bareAt = /(?<!\\)@(?![ \t\n]|$)/g;
const bareAtOrLast = /(?<!\\)@(?! )/g;
const deliveryComment = /<!--(?=\s*(?:trigger|message)\s*:)/gi;
const deliveryLine = /(^|\n)<!--(?= (?:trigger|message):[\w-]{1,64} -->[ \t]*\r?(?:\n|$))/g;
const ourLine = /(^|[\n\r\u0085\u2028\u2029])([ \t]*)\[(?=kinfold\])/gi;
/** One run of spaces has one reading here: two adjacent `\s*` would be quadratic in it. */
const fenceMark = /<(\s*(?:\/\s*)?(?:child|tool)-output)/gi;
