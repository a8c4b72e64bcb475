import {
  hasFigure,
  isPlaceholder,
  isSecretValue,
  looksLikeKey,
  type Named,
  nameSays,
} from "./secret-name.ts";
import type { Secret, Spans, Tail } from "./secret-shape.ts";

const HINT = /pass|pwd|secret|token|key|cred|auth|cookie|mnemonic|jwt|_pw|_pat|sig(?:nature)?=/gi;
/** How far around a hint its name is looked for. */
const NAME_MAX = 64;
const BLANKS_MAX = 8;

/** Where a value stands. `spelled`: as in an environment, an address or a flag, which is never code. */
interface Field {
  readonly start: number;
  readonly end: number;
  readonly quoted: boolean;
  readonly spelled: boolean;
}

/** Values that a name before them gives away, in any spelling. `known` are those found by shape, and marks. */
export function namedIn(text: string, known: Spans, tail: Tail | null): Secret[] {
  const found: Secret[] = [];
  let at = 0;
  while (at < text.length) {
    HINT.lastIndex = at;
    const hint = HINT.exec(text);
    if (hint === null) break;
    const covered = known.covering(hint.index);
    const name = covered === null ? nameAt(text, hint.index) : null;
    at = Math.max(covered?.end ?? 0, name?.end ?? 0, hint.index + hint[0].length);
    const secret = name === null ? null : behind(text, name, { known, tail });
    if (secret === null) continue;
    found.push(secret);
    at = Math.max(at, secret.end);
  }
  return found;
}

interface Looking {
  readonly known: Spans;
  readonly tail: Tail | null;
}

interface Name {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

function nameAt(text: string, hint: number): Name {
  let start = hint;
  while (start > 0 && hint - start < NAME_MAX && isName(text[start - 1] as string)) start -= 1;
  // Behind a backslash it is a line's end in JSON, and no part of the name.
  if (start < hint && text[start - 1] === "\\" && /[nrtbf]/.test(text[start] as string)) start += 1;
  const end = run(text, hint, isName, NAME_MAX);
  return { text: text.slice(start, end), start, end };
}

function behind(text: string, name: Name, at: Looking): Secret | null {
  const { known, tail } = at;
  const header = /(?:^|[-_.])(authorization|cookie)$/i.exec(name.text)?.[1]?.toLowerCase();
  if (header !== undefined) return headerValue(text, name, { header, known, tail });
  const named = connection(text, name) ?? nameSays(name.text) ?? signature(text, name);
  if (named === null) return null;
  const field = fieldBehind(text, name, { named, known, tail });
  if (field === null) return null;
  const { start, end, quoted, spelled } = field;
  // A value of several words may go on where the text ends.
  if (quoted && end === text.length && named.sure === "secret") tail?.hold(start);
  if (known.has(field)) return null;
  const place = { quoted, spelled, next: follows(text, end, known) };
  const rest = without(text, field, known);
  const isPart = rest.length < end - start;
  const isRest = isPart && isPartKnown(field, known) && /^[^\s(]*[A-Za-z0-9][^\s(]*$/.test(rest);
  // Where a name within the value had a secret of its own, the rest is no value.
  if (isPart && !isRest && !quoted) return null;
  return isRest || isSecretValue(named, rest, place) ? { start, end, kind: named.kind } : null;
}

/** A part has the shape of a secret, or the value begins with a mark that may be forged. */
function isPartKnown({ start, end }: Field, known: Spans): boolean {
  return known.within(start, end).some((each) => each.kind !== null || each.start === start);
}

/** What is left of a value without what is known of it, so that it is judged the same once that is hidden. */
function without(text: string, { start, end }: Field, known: Spans): string {
  if (known.all.length === 0) return text.slice(start, end);
  let rest = "";
  let at = start;
  for (const each of known.within(start, end)) {
    rest += text.slice(at, each.start);
    at = each.end;
  }
  return rest + text.slice(Math.min(at, end), end);
}

function fieldBehind(text: string, name: Name, at: Looking & { named: Named }): Field | null {
  const { start, end } = name;
  const { named, known } = at;
  const before = text[start - 1] ?? "";
  const separator = separatorBehind(text, end);
  const isFlag = name.text.startsWith("-");
  if (separator === null) {
    if (before === "<" && text[end] === ">") return element(text, end + 1);
    const blanks = run(text, end, isBlank, BLANKS_MAX);
    if (isFlag && blanks > end) return valueAt(text, blanks, { known });
    return named.sure === "secret" ? said(text, end, at) : null;
  }
  const isInQuotes = /["'`]/.test(before);
  if (separator.sign === ",") {
    return separator.quotedName && isInQuotes ? listed(text, separator.value, at) : null;
  }
  // `"password:"` is a label, and the quote behind it ends it; `/etc/passwd:` is a path.
  if (isInQuotes && !separator.quotedName && text[separator.value] === before) return null;
  if (before === "/" && separator.sign === ":") return null;
  const isTight = separator.isTight && separator.sign !== ":";
  const isLoud = name.text === name.text.toUpperCase();
  const isQuery = /[?&;#]/.test(before);
  const isHeader = separator.sign === ":" && /^(?:x|proxy|private|[A-Z][a-z]+|[A-Z]+)-/.test(name.text);
  const spelled = isTight ? isFlag || isLoud || isQuery : isHeader && named.sure === "key";
  const isLine = isTight && isLoud && /(?:^|[\n\r]|export )$/.test(text.slice(Math.max(0, start - 8), start));
  return typed(text, separator.value, known) ?? valueAt(text, separator.value, { known, spelled, isLine });
}

interface Separator {
  readonly sign: string;
  /** Where the value begins. */
  readonly value: number;
  readonly isTight: boolean;
  readonly quotedName: boolean;
}

const SIGN = /[?!]?:(?![:/])|:=|=>|={1,3}(?!>)|!={1,2}|%3[AD]|,/iy;

function separatorBehind(text: string, nameEnd: number): Separator | null {
  const closed = run(text, nameEnd, isClosing, BLANKS_MAX);
  const at = run(text, closed, isBlank, BLANKS_MAX);
  SIGN.lastIndex = at;
  const sign = SIGN.exec(text)?.[0];
  if (sign === undefined) return null;
  const after = at + sign.length;
  const value = run(text, after, isBlank, BLANKS_MAX);
  const isTight = at === nameEnd && value === after;
  return { sign: sign.replace(/^[?!]:/, ":"), value, isTight, quotedName: closed > nameEnd };
}

/** `token: string = "…"`: the value stands behind the type. */
function typed(text: string, at: number, known: Spans): Field | null {
  const type = /^&?(?:'static )?(?:string|str|char\*?)(?: \| \w{1,20})? {0,4}= {0,4}/i.exec(
    text.slice(at, at + 64),
  );
  return type === null ? null : valueAt(text, at + type[0].length, { known });
}

const CONTENT = /[^<\n]*/y;

/** `<password>…</password>` */
function element(text: string, start: number): Field | null {
  const end = stick(CONTENT, text, start);
  return end > start && text[end] === "<" ? { start, end, quoted: true, spelled: false } : null;
}

/** `set("password", "…")`: a list of names looks the same, so only what has a figure in it counts. */
function listed(text: string, at: number, { known, tail }: Looking): Field | null {
  const field = valueAt(text, at, { known });
  if (field?.end === text.length) tail?.hold(field.start);
  if (!field?.quoted) return null;
  const value = text.slice(field.start, field.end);
  return hasFigure(value) && !/^[A-Z][A-Z0-9]*_[A-Z0-9_]*(?:=|$)/.test(value) ? field : null;
}

const METHOD = /^(?:(?:base|sha|md|utf|aes|rsa|oauth|argon|http)[-_]?\d|\d{1,4}[-A-Za-z]{1,12}$)/i;

/** “The password is hunter2”: in prose only what is quoted, or has a figure in it and is no name of a method. */
function said(text: string, nameEnd: number, { known, tail }: Looking): Field | null {
  const is = /^ (?:is|was)(?: now| set to)?:? /.exec(text.slice(nameEnd, nameEnd + 20));
  if (is === null) return null;
  const field = valueAt(text, nameEnd + is[0].length, { known });
  if (field === null) return null;
  if (field.end === text.length) tail?.hold(field.start);
  const value = text.slice(field.start, field.end);
  const isLikely = value.length >= 6 && hasFigure(value) && !METHOD.test(value);
  return isLikely ? field : null;
}

function valueAt(
  text: string,
  at: number,
  how: { known: Spans; spelled?: boolean; isLine?: boolean },
): Field | null {
  const { known, spelled = false } = how;
  const quote = /^[bru]?(\\{0,3}["'`])/.exec(text.slice(at, at + 5));
  if (quote !== null) {
    const start = at + quote[0].length;
    const end = closing(text, start, quote[1] as string);
    return end > start ? { start, end, quoted: true, spelled } : null;
  }
  const line = how.isLine === true ? runOver(text, at, { known, ends: isSpace }) : at;
  const isWhole = line > at && (line === text.length || /[\n\r]/.test(text[line] as string));
  const end = isWhole ? line : runOver(text, at, { known, ends: endsValue });
  return end > at ? { start: at, end, quoted: false, spelled } : null;
}

/** What is known within a run belongs to it, also where a mark has a space in it. */
function runOver(
  text: string,
  start: number,
  how: { known: Spans; ends: (char: string, next: string | undefined) => boolean },
): number {
  let at = start;
  const isAnyKnown = how.known.all.length > 0;
  while (at < text.length) {
    const char = text[at] as string;
    const known = isAnyKnown ? how.known.covering(at) : null;
    if (known !== null) at = known.end;
    else if (how.ends(char, text[at + 1])) break;
    else at += 1;
  }
  return at;
}

const CLOSING = new Map<string, RegExp>();

/** Where a quoted value ends: at its quote, or with its line. */
function closing(text: string, start: number, quote: string): number {
  let found = CLOSING.get(quote);
  if (found === undefined) {
    found = new RegExp(String.raw`(?<!\\)${quote.replaceAll("\\", "\\\\")}|[\n\r]`, "g");
    CLOSING.set(quote, found);
  }
  found.lastIndex = start;
  return found.exec(text)?.index ?? text.length;
}

function follows(text: string, end: number, known: Spans): "end" | "word" | "code" {
  const at = run(text, end, isBlank, NAME_MAX);
  // A secret is a word before it is hidden and behind it.
  if (at > end && known.covering(at) !== null) return "word";
  const char = text[at];
  if (char === undefined || /[\n\r\\#]/.test(char)) return "end";
  if (at === end) return /[,;)}\]|]/.test(char) ? "code" : "end";
  return /[A-Za-z0-9]/.test(char) ? "word" : "code";
}

/** `Uid=sa;Pwd=…`: by itself, PWD is the folder one works in. */
function connection(text: string, { text: name, start, end }: Name): Named | null {
  const isPart =
    text[end] === "=" &&
    /^(?:pwd|pass)$/i.test(name) &&
    /; ?$/.test(text.slice(Math.max(0, start - 2), start));
  return isPart ? { sure: "secret", kind: "password" } : null;
}

/** An address that was signed: whoever has the signature may use it. */
function signature(text: string, { text: name, start }: Name): Named | null {
  const isSigned = /[?&;]/.test(text[start - 1] ?? "") && /(?:^|-)(?:sig|signature)$/i.test(name);
  return isSigned ? { sure: "key", kind: "signature" } : null;
}

/** Schemes of which one word follows, and those of which the whole line does. */
const ONE_WORD = /(?:bearer|basic|token|apikey|api-key|key|negotiate|ntlm|ssws|dpop)[ \t]{1,8}/iy;
const WHOLE_LINE = /(?:digest|hawk|oauth|signature|aws4-hmac-sha256)[ \t]{1,8}/iy;
const WORD = /[^\s"'`,;\\]*/y;
const SHORT = /[^\s"'`,;\\]{0,257}/y;
const LINE = /[^\n\r'`]{0,1024}/y;
const PAIRS = /(?:[\w.$-]{1,64}=[^\s;"'`\\]*(?:; ?|$)){0,64}[\w.$-]{1,64}=[^\s;"'`\\]*/y;
/** Longer than any name in code: it is hidden without another look, so that no text is looked at twice. */
const WORD_MAX = 256;

/** `Authorization: Bearer …` keeps its scheme; of `Cookie: …` nothing is kept. */
function headerValue(text: string, name: Name, at: Looking & { header: string }): Secret | null {
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
  return isKey || looksLikeKey(word, 16)
    ? { start: at, end: wordEnd(text, at, known), kind: "credential" }
    : null;
}

/** What is known and begins within a word belongs to it. */
function wordEnd(text: string, start: number, known: Spans): number {
  let end = stick(WORD, text, start);
  for (let over = known.covering(end); over !== null; over = known.covering(end))
    end = stick(WORD, text, over.end);
  return end;
}

function stick(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

function run(text: string, start: number, is: (char: string) => boolean, max: number): number {
  let at = start;
  while (at < text.length && at - start < max && is(text[at] as string)) at += 1;
  return at;
}

const isName = (char: string): boolean => /[\w.$-]/.test(char);
const isBlank = (char: string): boolean => char === " " || char === "\t";
const isSpace = (char: string): boolean => /[\s"'`\\]/.test(char);
const isClosing = (char: string): boolean => /["'`\\\]]/.test(char);

function endsValue(char: string, next: string | undefined): boolean {
  if (/[\s"'`<>,;&|\\“”‘’«»]/.test(char)) return true;
  return /[)}\]]/.test(char) && (next === undefined || !/[A-Za-z0-9]/.test(next));
}
