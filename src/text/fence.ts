import { byteLength } from "./quantity.ts";

/** Another session's text is data. It passes through this file before it enters a prompt or a tool reply. */

/** Turns an untrusted field into one line of at most `max` characters, without a command, path or fence. */
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
 * Wraps another session's text in a fence. The text's author cannot know the fence's id, so the text cannot
 * close the fence. The returned `bytes` is the size of the whole text; at most its first `bytesMax` bytes are
 * kept.
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

/** Returns text that cannot close a fence, imitate a delivery line, name a file or hide a character. */
export function asData(text: string): string {
  return escapeAt(harmless(visible(text)));
}

/** Escapes comments that look like our delivery lines: only the daemon may write a delivery id. */
export function withoutTriggerLines(text: string): string {
  return text.replace(deliveryComment, String.raw`<\!--`);
}

/** Escapes only whole lines that equal a delivery line. Used for a sender who may instruct the agent. */
export function withoutDeliveryLines(text: string): string {
  return text.replace(deliveryLine, String.raw`$1<\!--`);
}

/**
 * Like `withoutDeliveryLines`, but also escapes lines that begin with `[Kinfold]`. Used for text from another
 * session or system.
 */
export function withoutOurLines(text: string): string {
  return withoutDeliveryLines(text).replace(ourLine, String.raw`$1$2\[`);
}

/** Removes spaces and bare `@` from the end of a cut field: the text that follows could make an `@path`. */
function withoutDanglingAt(line: string): string {
  let end = line.length;
  while (end > 0 && (line[end - 1] === " " || (line[end - 1] === "@" && line[end - 2] !== "\\"))) end -= 1;
  return line.slice(0, end);
}

function harmless(text: string): string {
  return withoutTriggerLines(text).replace(fenceMark, String.raw`<\$1`);
}

/** To keep n characters, at most this many times n are read, because some characters are stripped. */
const readAhead = 64;

const bareAt = /(?<!\\)@(?![ \t\n]|$)/g;
const bareAtOrLast = /(?<!\\)@(?! )/g;
const deliveryComment = /<!--(?=\s*(?:trigger|message)\s*:)/gi;
const deliveryLine = /(^|\n)<!--(?= (?:trigger|message):[\w-]{1,64} -->[ \t]*\r?(?:\n|$))/g;
const ourLine = /(^|[\n\r\u0085\u2028\u2029])([ \t]*)\[(?=kinfold\])/gi;
/** Avoids two adjacent `\s*`: they match a run of spaces in many ways, which takes quadratic time. */
const fenceMark = /<(\s*(?:\/\s*)?(?:child|tool)-output)/gi;

/**
 * Drops terminal sequences, control characters, lone surrogates and characters that are never shown. Keeps
 * joiners and single variation selectors, which change how their neighbours look. Takes linear time.
 */
export function visible(text: string): string {
  return withoutTerminalSequences(text.toWellFormed())
    .replace(/\r\n?|[\u0085\u2028\u2029]/g, "\n")
    .replace(invisible, "")
    .replace(selectorRun, "$1");
}

/** Drops complete terminal sequences, for instance colours and links. Keeps unterminated ones. */
export function withoutTerminalSequences(text: string): string {
  return text.replace(terminalSequence, "");
}

const escape = String.raw`\u001b`;
/** Excludes openers. Otherwise each unterminated opener would be searched to the end of the text. */
const stringBody = String.raw`[^\u0007\u001b\u0090\u0098\u009c-\u009f\n]*`;
const terminalSequence = new RegExp(
  [
    String.raw`(?:${escape}\[|\u009b)[0-?]*[ -/]*[@-~]`,
    String.raw`(?:${escape}[\]PX^_]|[\u0090\u0098\u009d-\u009f])${stringBody}(?:\u0007|${escape}\\|\u009c)`,
    String.raw`${escape}[ -/]+[0-~]`,
  ].join("|"),
  "g",
);

const variationSelector = String.raw`\u180b-\u180d\u180f\ufe00-\ufe0f\u{e0100}-\u{e01ef}`;
const invisible = new RegExp(
  String.raw`[[\p{Cc}--[\t\n]][\p{Default_Ignorable_Code_Point}--[\u200c\u200d${variationSelector}]]\ufff9-\ufffb]`,
  "gv",
);
/** A second selector after a character changes nothing visible, and can carry hidden text. */
const selectorRun = new RegExp(`([${variationSelector}])[${variationSelector}]+`, "gv");

/** Returns the last index at or before `at` where a text may be cut without splitting a surrogate pair. */
export function cutBefore(text: string, at: number): number {
  return at > 0 && isHalf(text.charCodeAt(at), 0xdc00) && isHalf(text.charCodeAt(at - 1), 0xd800)
    ? at - 1
    : at;
}

/** Returns the longest prefix of at most `max` UTF-16 units that does not split a surrogate pair. */
export function firstChars(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, cutBefore(text, Math.max(0, max)));
}

/** Returns the longest prefix of at most `bytesMax` bytes that does not split a code point. */
export function firstBytes(text: string, bytesMax: number): string {
  const room = new Uint8Array(Math.max(0, bytesMax));
  return text.slice(0, encoder.encodeInto(text, room).read);
}

export function folded(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

export function shortLine(text: string, max: number): string {
  // The text may be megabytes long, so text far beyond the cut is not processed.
  const line = folded(text.slice(0, max * READ_AHEAD));
  return line.length <= max ? line : `${firstChars(line, max - 1)}…`;
}

export function boundedText(text: string, max: number): string {
  if (text.length <= max) return text;
  const head = firstChars(text, max);
  return `${head}… (${text.length - head.length} characters more)`;
}

function isHalf(unit: number, kind: 0xd800 | 0xdc00): boolean {
  return (unit & 0xfc00) === kind;
}

const READ_AHEAD = 4;
const encoder = new TextEncoder();
