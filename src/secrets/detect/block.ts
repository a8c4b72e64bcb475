import { stick } from "./separator.ts";
import type { Secret, Tail } from "./shape.ts";

/** The end of a key's `-----BEGIN …` or `-----END …` line. PuTTY files have a `Private-Lines` header instead. */
const BORDER = /PRIVATE KEY(?: BLOCK)?(?:-{4,5}| ----)|Private-Lines: \d{1,4}/g;
const HEAD = /-{2,5} ?BEGIN [A-Z0-9 ]{0,40}$/;
const FOOT = /-{2,5} ?END [A-Z0-9 ]{0,40}$/;
const BORDER_MAX = 64;
/** Line breaks, also in the forms that JSON, URLs and HTML use for them. */
const BREAK = String.raw`\s|\\{1,4}[nrt]|%0[AaDd]|<br\/?>`;
/** Prefixes that a diff and `grep` write before a line. */
const MARGIN = String.raw`(?<=\s|\\[nr])(?!-{3,6} ?E)[\w./-]{0,128}[:-](?:\d{1,6}[:-])?`;
/** Quotes and comment signs of source code and messages, and line numbers. */
const QUOTES = String.raw`["',;>|#*→]|\+(?=[\s"'])|\d{1,6}[\t→:|]`;
/** Text between two lines of a key: breaks, prefixes, quotes. */
const BETWEEN = new RegExp(String.raw`(?:${BREAK}|${QUOTES}|${MARGIN}(?=[A-Za-z0-9+/=]{2})){0,64}`, "y");
const HEADERS = new RegExp(
  String.raw`(?:(?:${BREAK}){0,16}(?:\+|${MARGIN})?[A-Z][A-Za-z-]{2,30}: [^\n\\]{0,200}){0,12}`,
  "y",
);
const LINE = /[A-Za-z0-9+/=]*/y;
const END = new RegExp(
  String.raw`(?:${BREAK}|${QUOTES}){0,64}(?:[\w./-]{0,128}[:+-](?:\d{1,6}[:-])?)?-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?:-{4,5}| ----)`,
  "y",
);
/** A line of a key is longer than a word; only the last lines may be shorter. */
const LINE_MIN = 16;
const SHORT_MAX = 3;
const KEY_MIN = 16;
/** Without its first border line, a key is recognized only if it is this long. */
const HEADLESS_MIN = 40;

/** Finds private keys in PEM and PuTTY format, complete or cut off at either end. */
export function keyBlocksIn(text: string, tail: Tail | null): Secret[] {
  if (tail === null && !text.includes("PRIVATE KEY") && !text.includes("Private-Lines")) return [];
  const found: Secret[] = [];
  let from = 0;
  for (const border of text.matchAll(BORDER)) {
    if (border.index < from) continue;
    const after = border.index + border[0].length;
    const before = text.slice(Math.max(from, border.index - BORDER_MAX), border.index);
    const foot = FOOT.exec(before)?.[0];
    const borderStart = border.index - (foot ?? HEAD.exec(before)?.[0] ?? "").length;
    const block = foot === undefined ? bodyAfter(text, after) : bodyBefore(text, borderStart, from);
    if (block.isOpen) tail?.hold(borderStart);
    if (block.length < (foot === undefined ? KEY_MIN : HEADLESS_MIN)) continue;
    const [start, end] = foot === undefined ? [borderStart, block.at] : [block.at, after];
    found.push({ start, end, kind: "private key" });
    from = end;
  }
  if (tail !== null) holdBegun(text, tail, from);
  return found;
}

/** An unfinished border line or PuTTY header at the end of the text. */
const BEGUN = /-{1,6} ?(?:[A-Z][A-Z0-9 ]{0,60}-{0,5})?$|Private-Lines:? ?\d{0,4}$/;

/** Holds back lines that may turn out to be a key once its last border line arrives. */
function holdBegun(text: string, tail: Tail, from: number): void {
  const begun = BEGUN.exec(text.slice(-BORDER_MAX - 12))?.[0] ?? "";
  const end = text.length - begun.length;
  if (begun !== "") tail.hold(end);
  const body = bodyBefore(text, end, from);
  if (body.length >= HEADLESS_MIN) tail.hold(body.at);
}

interface Body {
  /** Where the key ends, or where it begins if it was read backwards. */
  readonly at: number;
  /** Number of key characters found. */
  readonly length: number;
  /** True if the text may end before the key does. */
  readonly isOpen: boolean;
}

/** These match an unfinished last line that may belong to a key: a line break, border, header or prefix. */
const GOES_ON = /^(?:\\{1,4}|-{1,6}[ A-Z0-9]{0,60}-{0,5})?$/;
const WORD_BEGUN = /^\S{1,200}(?:(?<=-) ?E[A-Z0-9 ]{0,60}-{0,5})?$/;
const HEADER_BEGUN = /^[A-Z][A-Za-z-]{0,30}:? ?$/;

function bodyAfter(text: string, start: number): Body {
  let at = stick(HEADERS, text, start);
  let length = 0;
  let short = 0;
  let end = at;
  for (;;) {
    const closed = stick(END, text, at);
    if (closed > at) return { at: closed, length, isOpen: false };
    const line = stick(BETWEEN, text, at);
    at = stick(LINE, text, line);
    const isOpen =
      GOES_ON.test(text.slice(at, at + 2 * BORDER_MAX)) ||
      WORD_BEGUN.test(text.slice(line, line + 280)) ||
      (length === 0 && HEADER_BEGUN.test(text.slice(line, line + BORDER_MAX)));
    if (at === line) return { at: end, length, isOpen };
    short = at - line < LINE_MIN ? short + 1 : 0;
    if (short > SHORT_MAX) return { at: end, length, isOpen };
    if (short === 0 || at === text.length) {
      length += at - line;
      end = at;
    }
  }
}

/** Reads a key's body backwards from its last border line, no further than `from`. */
function bodyBefore(text: string, footStart: number, from: number): Body {
  let at = footStart;
  let start = footStart;
  let length = 0;
  for (;;) {
    let lineEnd = at;
    while (lineEnd > from && isBetween(text, lineEnd - 1)) lineEnd -= 1;
    at = lineEnd;
    while (at > from && LINE_CODES.has(text.charCodeAt(at - 1))) at -= 1;
    const isShort = lineEnd - at < HEADLESS_MIN && at > from;
    const isPart = at > from && !isBetween(text, at - 1);
    if (at === lineEnd || isPart || (isShort && length > 0)) return { at: start, length, isOpen: false };
    length += lineEnd - at;
    start = at;
  }
}

const BETWEEN_CODES = new Set([..." \t\n\r\"',;>|#*\\"].map((char) => char.charCodeAt(0)));
const DIFF_CODES = new Set([43, 45]);
const NEWLINE = 10;
const LINE_CODES = new Set(
  [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="].map((char) => char.charCodeAt(0)),
);

/** Whether the character may stand between key lines; `+` and `-` only at a line's start, as in a diff. */
function isBetween(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return BETWEEN_CODES.has(code) || (DIFF_CODES.has(code) && text.charCodeAt(at - 1) === NEWLINE);
}
