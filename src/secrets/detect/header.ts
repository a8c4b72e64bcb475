import { hasFigure, isPlaceholder, looksLikeKey } from "./name.ts";
import { type Looking, type Name, separatorBehind, stick } from "./separator.ts";
import type { Secret, Spans, Tail } from "./shape.ts";

/** Schemes whose secret is the next word, and then schemes whose secret is the rest of the line. */
const ONE_WORD = /(?:bearer|basic|token|apikey|api-key|key|negotiate|ntlm|ssws|dpop)[ \t]{1,8}/iy;
const WHOLE_LINE = /(?:digest|hawk|oauth|signature|aws4-hmac-sha256)[ \t]{1,8}/iy;
const WORD = /[^\s"'`,;\\]*/y;
const SHORT = /[^\s"'`,;\\]{0,257}/y;
const LINE = /[^\n\r'`]{0,1024}/y;
const PAIRS = /(?:[\w.$-]{1,64}=[^\s;"'`\\]*(?:; ?|$)){0,64}[\w.$-]{1,64}=[^\s;"'`\\]*/y;
/** A longer word cannot be a name in code, so it is hidden without further checks. */
const WORD_MAX = 256;

/** In `Authorization: Bearer …` the scheme stays visible; the value of `Cookie: …` is hidden whole. */
export function headerValue(text: string, name: Name, at: Looking & { header: string }): Secret | null {
  const separator = separatorBehind(text, name.end);
  if (separator === null) return null;
  const quote = /^\\{0,3}["'`]/.exec(text.slice(separator.value, separator.value + 4))?.[0] ?? "";
  const start = separator.value + quote.length;
  return at.header === "cookie" ? cookies(text, start, at.tail) : credential(text, start, at);
}

function cookies(text: string, start: number, tail: Tail | null): Secret | null {
  const end = stick(PAIRS, text, start);
  if (/^;? ?[\w.$-]{0,64}$/.test(text.slice(end, end + 68))) tail?.hold(start);
  const pairs = text.slice(start, end).split(";");
  const isHidden = pairs.some(
    (pair) => pair.length > WORD_MAX || looksLikeKey(pair.slice(pair.indexOf("=") + 1), 8),
  );
  return isHidden ? { start, end, kind: "cookie" } : null;
}

function credential(text: string, start: number, { known, tail }: Looking): Secret | null {
  const line = stick(WHOLE_LINE, text, start);
  if (line > start) {
    const end = stick(LINE, text, line);
    if (end === text.length) tail?.hold(line);
    const value = text.slice(line, end);
    return value.startsWith("[redacted: ") || isPlaceholder(value) || !hasFigure(value)
      ? null
      : { start: line, end, kind: "credential" };
  }
  const at = stick(ONE_WORD, text, start);
  const hidden = known.covering(at);
  if (hidden?.start === at) {
    const isForged = hidden.kind === null && /[A-Za-z0-9]/.test(text[hidden.end] ?? "");
    return isForged ? { start: at, end: wordEnd(text, hidden.end, known), kind: "credential" } : null;
  }
  const short = stick(SHORT, text, at);
  if (short - at > WORD_MAX) return { start: at, end: wordEnd(text, at, known), kind: "credential" };
  const word = text.slice(at, short);
  if (isPlaceholder(word) || /^[A-Za-z_$][\w$]*[.([]|\$\{|\{\{/.test(word)) return null;
  const isKey = at > start && word.length >= 6 && (hasFigure(word) || word.length >= 16);
  if (at === start && !looksLikeKey(word, 16)) return otherScheme(text, start, known);
  return isKey || looksLikeKey(word, 16)
    ? { start: at, end: wordEnd(text, at, known), kind: "credential" }
    : null;
}

const SCHEME = /[A-Za-z][\w-]{1,40}[ \t]{1,8}/y;

/** `Authorization: GenieKey …`: after an unknown scheme, a word that looks like a key is hidden. */
function otherScheme(text: string, start: number, known: Spans): Secret | null {
  const at = stick(SCHEME, text, start);
  if (at === start) return null;
  const word = text.slice(at, stick(SHORT, text, at));
  return looksLikeKey(word, 12) && !isPlaceholder(word)
    ? { start: at, end: wordEnd(text, at, known), kind: "credential" }
    : null;
}

function wordEnd(text: string, start: number, known: Spans): number {
  let end = stick(WORD, text, start);
  for (let over = known.covering(end); over !== null; over = known.covering(end))
    end = stick(WORD, text, over.end);
  return end;
}
