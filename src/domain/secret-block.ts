import type { Secret } from "./secret-shape.ts";

/** The end of both border lines of a private key; PuTTY's files have a heading of their own. */
const BORDER = /PRIVATE KEY(?: BLOCK)?(?:-{4,5}| ----)|Private-Lines: \d{1,4}/g;
const HEAD = /-{0,5} ?BEGIN [A-Z0-9 ]{0,40}$/;
const FOOT = /-{0,5} ?END [A-Z0-9 ]{0,40}$/;
const BORDER_MAX = 64;
/** What stands between two lines of a key: breaks, also written as `\n`; quotes of source code; numbers of lines. */
const BETWEEN = /(?:\s|\\{1,4}[nrt]|["',;>|#*→]|\+(?=[\s"'])|\d{1,6}[\t→:|]){0,64}/y;
const HEADERS = /(?:(?:\s|\\{1,4}[nr]){0,16}[A-Z][A-Za-z-]{2,30}: [^\n\\]{0,200}){0,12}/y;
const LINE = /[A-Za-z0-9+/=]*/y;
const END = /(?:\s|\\{1,4}[nrt]){0,64}-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?:-{4,5}| ----)/y;
/** A line of a key is longer than a word; only its last ones may be shorter. */
const LINE_MIN = 16;
const SHORT_MAX = 3;
const KEY_MIN = 16;

/** Private keys in their own format, whole or cut off at either end. */
export function keyBlocksIn(text: string): Secret[] {
  const found: Secret[] = [];
  let from = 0;
  for (const border of text.matchAll(BORDER)) {
    if (border.index < from) continue;
    const after = border.index + border[0].length;
    const before = text.slice(Math.max(from, border.index - BORDER_MAX), border.index);
    const foot = FOOT.exec(before);
    const head = HEAD.exec(before);
    const borderStart = border.index - (foot ?? head ?? [""])[0].length;
    const block = foot === null ? bodyAfter(text, after) : bodyBefore(text, borderStart, from);
    if (block.length < KEY_MIN) continue;
    const [start, end] = foot === null ? [borderStart, block.at] : [block.at, after];
    found.push({ start, end, kind: "private key" });
    from = end;
  }
  return found;
}

interface Body {
  /** Where the key ends, or begins. */
  readonly at: number;
  /** How much of it there is. */
  readonly length: number;
}

function bodyAfter(text: string, start: number): Body {
  let at = stick(HEADERS, text, start);
  let length = 0;
  let short = 0;
  let end = at;
  for (;;) {
    const closed = stickIf(END, text, at);
    if (closed !== null) return { at: closed, length };
    const line = stick(BETWEEN, text, at);
    at = stick(LINE, text, line);
    if (at === line) return { at: at === text.length ? at : end, length };
    short = at - line < LINE_MIN ? short + 1 : 0;
    if (short > SHORT_MAX) return { at: end, length };
    if (short === 0 || at === text.length) {
      length += at - line;
      end = at;
    }
  }
}

/** The same from a key's last line upward, no further than `from`. */
function bodyBefore(text: string, footStart: number, from: number): Body {
  let at = footStart;
  let start = footStart;
  let length = 0;
  let short = 0;
  for (;;) {
    const lineEnd = back(text, at, from, isBetween);
    at = back(text, lineEnd, from, isLine);
    if (at === lineEnd) return { at: start, length };
    const isFirst = length === 0 && short === 0;
    short = lineEnd - at < LINE_MIN && at > from ? short + 1 : 0;
    if (short > (isFirst ? 1 : 0)) return { at: start, length };
    length += lineEnd - at;
    start = at;
  }
}

function back(text: string, end: number, from: number, is: (char: string) => boolean): number {
  let at = end;
  while (at > from && is(text[at - 1] as string)) at -= 1;
  return at;
}

const isBetween = (char: string): boolean => /[\s"',;>|#*]/.test(char);
const isLine = (char: string): boolean => /[A-Za-z0-9+/=]/.test(char);

function stick(pattern: RegExp, text: string, at: number): number {
  return stickIf(pattern, text, at) ?? at;
}

function stickIf(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : null;
}
