import { blockAt, lineBelow, valueNear } from "./near-name.ts";
import { headerValue } from "./header.ts";
import { hasFigure, isSecretValue, type Named, nameSays } from "./name.ts";
import { BLANKS_MAX, isBlank, type Looking, type Name, run, separatorBehind, stick } from "./separator.ts";
import type { Secret, Spans, Tail } from "./shape.ts";

export const HINT = /pass|pwd|secret|token|key|cred|auth|cookie|mnemonic|jwt|_pw|_pat|sig(?:nature)?=/gi;
/** A name extends at most this many characters to either side of a hint such as `pass`. */
const NAME_MAX = 64;

/**
 * A value's range. `spelled`: the value is in environment-variable, URL or flag syntax, so it is never code.
 */
interface Field {
  readonly start: number;
  readonly end: number;
  readonly quoted: boolean;
  readonly spelled: boolean;
}

/** Finds secrets by the name before them. `known` has the secrets and `[redacted: …]` marks found so far. */
export function namedIn(text: string, known: Spans, tail: Tail | null): Secret[] {
  const found: Secret[] = [];
  let at = 0;
  while (at < text.length) {
    HINT.lastIndex = at;
    const hint = HINT.exec(text);
    if (hint === null) break;
    const covered = known.covering(hint.index);
    const name = covered === null ? nameAt(text, hint.index, known) : null;
    at = Math.max(covered?.end ?? 0, name?.end ?? 0, hint.index + hint[0].length);
    const secret = name === null ? null : behind(text, name, { known, tail });
    if (secret === null) continue;
    found.push(secret);
    at = Math.max(at, secret.end);
  }
  return found;
}

function nameAt(text: string, hint: number, known: Spans): Name {
  let start = hint;
  while (start > 0 && hint - start < NAME_MAX && isName(text[start - 1] as string)) start -= 1;
  // After a backslash, the first letter belongs to a JSON escape such as `\n`, not to the name.
  if (start < hint && text[start - 1] === "\\" && /[nrtbf]/.test(text[start] as string)) start += 1;
  let end = run(text, hint, { is: isName, max: NAME_MAX });
  // Known secrets are not part of the name.
  for (const each of known.within(start, end)) {
    if (each.end <= hint) start = each.end;
    else end = Math.min(end, each.start);
  }
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
  // A quoted value or a YAML block at the end of the text may continue in the next piece of text.
  if (quoted && end === text.length && named.sure === "secret") tail?.hold(start);
  // A value that contains an unfinished private key may also continue in the next piece of text.
  if (tail !== null && tail.from > start && tail.from <= end) tail.hold(start);
  if (known.has(field)) return null;
  const context = { quoted, spelled, next: follows(text, end, known) };
  const rest = without(text, field, known);
  const isPart = rest.length < end - start;
  const isRest = isPart && isPartKnown(field, known) && /^[^\s(]*[A-Za-z0-9][^\s(]*$/.test(rest);
  // If the value contains another name with its own secret, the remaining text is not a value.
  if (isPart && !isRest && !quoted) return null;
  return isRest || isSecretValue(named, rest, context) ? { start, end, kind: named.kind } : null;
}

/** Whether the value has a known secret, or begins with a mark, perhaps forged to keep the rest visible. */
function isPartKnown({ start, end }: Field, known: Spans): boolean {
  return known.within(start, end).some((each) => each.kind !== null || each.start === start);
}

/** Leaves out known secrets, so that a value is judged the same before and after they are hidden. */
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
  const beside = valueNear(text, name);
  if (beside !== null) return valueAt(text, beside, { known });
  const separator = separatorBehind(text, end);
  const isFlag = name.text.startsWith("-");
  if (separator === null) {
    if (before === "<" && text[end] === ">") return element(text, end + 1);
    const blanks = run(text, end, { is: isBlank, max: BLANKS_MAX });
    if (isFlag && blanks > end) return valueAt(text, blanks, { known });
    return named.sure === "secret" ? said(text, end, at) : null;
  }
  const isInQuotes = /["'`]/.test(before);
  if (separator.sign === ",") {
    return separator.quotedName && isInQuotes ? listed(text, separator.value, at) : null;
  }
  // No value follows the label `"password:"`, which ends at its closing quote, or the path `/etc/passwd:`.
  if (isInQuotes && !separator.quotedName && text[separator.value] === before) return null;
  if (before === "/" && separator.sign === ":") return null;
  const below = valueBelow(text, separator.value, known);
  if (below !== null) return below;
  const isTight = separator.isTight && separator.sign !== ":";
  const isLoud = name.text === name.text.toUpperCase();
  const isQuery = /[?&;#]/.test(before);
  const isHeader = separator.sign === ":" && /^(?:x|proxy|private|[A-Z][a-z]+|[A-Z]+)-/.test(name.text);
  const spelled = isTight ? isFlag || isLoud || isQuery : isHeader && named.sure === "key";
  const isLine = isTight && isLoud && /(?:^|[\n\r]|export )$/.test(text.slice(Math.max(0, start - 8), start));
  return typed(text, separator.value, known) ?? valueAt(text, separator.value, { known, spelled, isLine });
}

/** Returns the value below a name: a YAML block, or quoted text that is not itself a name before a colon. */
function valueBelow(text: string, at: number, known: Spans): Field | null {
  const block = blockAt(text, at, known);
  if (block !== null) return { ...block, quoted: true, spelled: false };
  const line = lineBelow(text, at);
  const field = line === null ? null : valueAt(text, line, { known });
  return field === null || /^\\{0,3}["']\s{0,4}:/.test(text.slice(field.end, field.end + 9)) ? null : field;
}

/** `token: string = "…"`: the value follows the type. */
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

/** `set("password", "…")`: a list of names looks the same, so only a value with a digit counts. */
function listed(text: string, at: number, { known, tail }: Looking): Field | null {
  const field = valueAt(text, at, { known });
  if (field?.end === text.length) tail?.hold(field.start);
  if (!field?.quoted) return null;
  const value = text.slice(field.start, field.end);
  return hasFigure(value) && !/^[A-Z][A-Z0-9]*_[A-Z0-9_]*(?:=|$)/.test(value) ? field : null;
}

const METHOD = /^(?:(?:base|sha|md|utf|aes|rsa|oauth|argon|http)[-_]?\d|\d{1,4}[-A-Za-z]{1,12}$)/i;

/** “The password is hunter2”: in prose a value must have a digit and must not be the name of an algorithm. */
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
    const close = (from: number): number => closing(text, from, quote[1] as string);
    const end = known.past(close(start), close);
    return end > start ? { start, end, quoted: true, spelled } : null;
  }
  const line = how.isLine === true ? runOver(text, at, { known, ends: isSpace }) : at;
  const isWhole = line > at && (line === text.length || /[\n\r]/.test(text[line] as string));
  const end = isWhole ? line : runOver(text, at, { known, ends: endsValue });
  return end > at ? { start: at, end, quoted: false, spelled } : null;
}

/** Returns where a value ends. A known secret or a mark never ends it, although a mark contains a space. */
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

function closing(text: string, start: number, quote: string): number {
  const found =
    CLOSING.get(quote) ?? new RegExp(String.raw`(?<!\\)${quote.replaceAll("\\", "\\\\")}|[\n\r]`, "g");
  CLOSING.set(quote, found);
  found.lastIndex = start;
  return found.exec(text)?.index ?? text.length;
}

function follows(text: string, end: number, known: Spans): "end" | "word" | "code" {
  const at = run(text, end, { is: isBlank, max: NAME_MAX });
  // A secret counts as a word both before and after it is hidden.
  if (at > end && known.covering(at) !== null) return "word";
  const char = text[at];
  if (char === undefined || /[\n\r\\#]/.test(char)) return "end";
  if (at === end) return /[,;)}\]|]/.test(char) ? "code" : "end";
  return /[A-Za-z0-9]/.test(char) ? "word" : "code";
}

/** In `Uid=sa;Pwd=…`, Pwd is a password. Without another field before it, PWD is the working directory. */
function connection(text: string, { text: name, start, end }: Name): Named | null {
  const isPart =
    text[end] === "=" &&
    /^(?:pwd|pass)$/i.test(name) &&
    /; ?$/.test(text.slice(Math.max(0, start - 2), start));
  return isPart ? { sure: "secret", kind: "password" } : null;
}

/** A signed address: anyone who has the signature may use the address. */
function signature(text: string, { text: name, start }: Name): Named | null {
  const isSigned = /[?&;]/.test(text[start - 1] ?? "") && /(?:^|-)(?:sig|signature)$/i.test(name);
  return isSigned ? { sure: "key", kind: "signature" } : null;
}

const isName = (char: string): boolean => /[\w.$-]/.test(char);
const isSpace = (char: string): boolean => /[\s"'`\\]/.test(char);

function endsValue(char: string, next: string | undefined): boolean {
  if (/[\s"'`<>,;&|\\“”‘’«»]/.test(char)) return true;
  return /[)}\]]/.test(char) && (next === undefined || !/[A-Za-z0-9]/.test(next));
}
