/** Text of another session is data: whatever enters a prompt or a line of ours passes through here. */

/** A field that somebody else may influence: one line, capped, unable to be a command, a path or a fence. */
export function oneLine(text: string, max = 120): string {
  const read = text.slice(0, max * readAhead);
  const line = harmless(visible(read).replace(/\s+/g, " ").trim())
    .replaceAll("<!--", String.raw`<\!--`)
    .replaceAll("`", "'")
    .replace(bareAtOrLast, String.raw`\@`);
  const points = Array.from(line);
  if (points.length <= max && read.length === text.length) return line;
  return `${points
    .slice(0, max - 1)
    .join("")
    .replace(danglingAt, "")}…`;
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
  const clean = escapeAt(harmless(visible(read)))
    .replace(/^\n+/, "")
    .trimEnd();
  const kept = firstBytes(clean, bytesMax);
  const bytes = byteLength(clean) + byteLength(text.slice(read.length));
  const body = kept === "" ? "" : `${kept.trimEnd()}\n`;
  return {
    text: `<child-output id="${id}">\n${body}</child-output id="${id}">`,
    cut: bytes > byteLength(kept),
    bytes,
  };
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

/** What a reader can see: no terminal sequences, control characters, bidi overrides or lone surrogates. */
export function visible(text: string): string {
  return text
    .toWellFormed()
    .replace(terminalSequence, "")
    .replace(/\r\n?|[\u0085\u2028\u2029]/g, "\n")
    .replace(invisible, "");
}

/** "840 ms", "1.8 s", "6 min 12 s", "2 h 3 min", "1 d 4 h". */
export function duration(ms: number): string {
  if (!(ms > 0)) return "0 s";
  if (ms < 1000) return ms < 999.5 ? `${Math.round(ms)} ms` : "1 s";
  if (ms < 9950) return `${Math.round(ms / 100) / 10} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return pair([Math.floor(seconds / 60), "min"], [seconds % 60, "s"]);
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return pair([Math.floor(minutes / 60), "h"], [minutes % 60, "min"]);
  const hours = Math.round(minutes / 60);
  return pair([Math.floor(hours / 24), "d"], [hours % 24, "h"]);
}

/** "1 file", "3 files". */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** "812", "9.4k", "41k", "1.9M". */
export function tokens(n: number): string {
  if (!(n > 0)) return "0";
  if (n < 999.5) return String(Math.round(n));
  if (n < 999_500) return `${short(n / 1000)}k`;
  return `${short(n / 1_000_000)}M`;
}

export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** The longest beginning of at most this many bytes that ends at a code point. */
export function firstBytes(text: string, bytesMax: number): string {
  const room = new Uint8Array(bytesMax);
  return text.slice(0, encoder.encodeInto(text, room).read);
}

function harmless(text: string): string {
  return withoutTriggerLines(text).replace(fenceMark, String.raw`<\$1`);
}

function pair(first: [number, string], second: [number, string]): string {
  const head = `${first[0]} ${first[1]}`;
  return second[0] === 0 ? head : `${head} ${second[0]} ${second[1]}`;
}

function short(n: number): string {
  return n < 9.95 ? String(Math.round(n * 10) / 10) : String(Math.round(n));
}

const encoder = new TextEncoder();

/** How much more is read than is kept, in characters: enough for what gets stripped, bounded for a flood. */
const readAhead = 64;

const bareAt = /(?<!\\)@(?![ \t\n]|$)/g;
const bareAtOrLast = /(?<!\\)@(?! )/g;
const danglingAt = /(?: |(?<!\\)@)+$/;
const deliveryComment = /<!--(?=\s*(?:trigger|message)\s*:)/gi;
const deliveryLine = /(^|\n)<!--(?= (?:trigger|message):[\w-]{1,64} -->[ \t]*\r?(?:\n|$))/g;
const ourLine = /(^|[\n\r\u0085\u2028\u2029])([ \t]*)\[(?=kinfold\])/gi;
const fenceMark = /<(\s*\/?\s*child-output)/gi;

const escape = String.raw`\u001b`;
const terminalSequence = new RegExp(
  [
    String.raw`(?:${escape}\[|\u009b)[0-?]*[ -/]*[@-~]`,
    String.raw`(?:${escape}[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u009c\n]*(?:\u0007|${escape}\\|\u009c)`,
    String.raw`${escape}[ -/]+[0-~]`,
  ].join("|"),
  "g",
);

/** Controls but tab and newline, zero-width and bidi characters but the joiners, and Unicode tags. */
const invisible =
  /(?![\t\n])\p{Cc}|[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
