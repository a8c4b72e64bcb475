import type { Spans } from "./shape.ts";
import { BLANKS_MAX, isBlank, type Name, run, stick } from "./separator.ts";

/** How many characters before a name are searched for a keyword such as `ENV`. */
const BEFORE_MAX = 32;
const PAIR_NAME = /(?:name|key|variable|id)\\{0,3}["'`]?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}["'`]?$/i;
const PAIR_VALUE =
  /\\{0,3}["'`]?,?(?:\s|\\{1,3}[nr]){0,40}\\{0,3}["'`]?(?:value|val)\\{0,3}["'`]?[ \t]{0,8}[:=][ \t]{0,8}/iy;
const ENVIRONMENT = /(?:[\n\r]|\\n)[ \t]{0,8}(?:ENV|setx|set -g?x)[ \t]{1,4}$/;
const SQL = /(?:with|encrypted|set)\s$/i;

/**
 * Finds a secret's value when no `=` or `:` connects it to its name: `name: DB_PASSWORD` with `value: …`
 * below it, `ENV API_KEY …` in a Dockerfile, `PASSWORD '…'` in SQL.
 */
export function valueNear(text: string, name: Name): number | null {
  const { start, end } = name;
  const from = Math.max(0, start - BEFORE_MAX);
  const pair = stick(PAIR_VALUE, text, end);
  if (pair > end) return PAIR_NAME.test(text.slice(from, start)) ? pair : null;
  const at = run(text, end, { is: isBlank, max: BLANKS_MAX });
  if (at === end) return null;
  const before = from === 0 ? `\n${text.slice(from, start)}` : text.slice(from, start);
  if (ENVIRONMENT.test(before)) return at;
  const isSql =
    text[at] === "'" && (name.text === "PASSWORD" || (/^password$/i.test(name.text) && SQL.test(before)));
  return isSql ? at : null;
}

const BLOCK = /[|>][+-]?\d?[ \t]{0,8}(?:\r?\n|(\\{1,3})n)[ \t]{1,40}/y;
const LINE = /[^\n\r]*/y;
const LINE_IN_QUOTES = /[^\n\r\\"]*/y;

/** Returns the range of a YAML block's first line: the line below `password: |`. */
export function blockAt(text: string, at: number, known: Spans): { start: number; end: number } | null {
  BLOCK.lastIndex = at;
  const block = BLOCK.exec(text);
  if (block === null) return null;
  const start = at + block[0].length;
  const line = block[1] === undefined ? LINE : LINE_IN_QUOTES;
  const end = known.past(stick(line, text, start), (from) => stick(line, text, from));
  return end > start ? { start, end } : null;
}

const LINE_BELOW = /\\?\r?\n[ \t]{0,40}(?=\\{0,3}["'])/y;

export function lineBelow(text: string, at: number): number | null {
  const below = stick(LINE_BELOW, text, at);
  return below > at ? below : null;
}
