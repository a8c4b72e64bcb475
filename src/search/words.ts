import type { EntryBody } from "../contract/entry.ts";
import { firstChars } from "../text/fence.ts";
import type { Term } from "./query.ts";

/** A word in its searchable form, and its range in the text. */
interface Span {
  readonly word: string;
  readonly start: number;
  readonly end: number;
}

/** Longer words are cut to this length, in texts and in queries, so that they still match each other. */
export const WORD_MAX = 64;

/**
 * Returns the words of a text as both databases store them: runs of letters and digits, without differences
 * of case, accents or character width. In scripts without spaces each character is a word, so that a search
 * can match inside a sentence. Both databases use this function, because each would split text differently.
 */
export function wordsOf(text: string, wordsMax = Infinity): string[] {
  if (isPlain(text))
    return (lower(text).match(PLAIN_RUN) ?? []).slice(0, wordsMax).map((word) => firstChars(word, WORD_MAX));
  const words: string[] = [];
  for (const { word } of spansOf(text)) {
    if (words.length >= wordsMax) break;
    words.push(word);
  }
  return words;
}

/** Yields the words of `wordsOf` with their ranges in the text. */
export function* spansOf(text: string): Generator<Span> {
  for (const found of text.matchAll(RUN)) {
    const [run] = found;
    if (isAscii(run)) {
      yield { word: firstChars(lower(run), WORD_MAX), start: found.index, end: found.index + run.length };
    } else yield* spansIn(run, found.index);
  }
}

/** Returns an entry's searchable text: its text, tool name, command, paths and plan steps. */
export function searchedText(body: EntryBody): string {
  const { text } = body;
  const more = [
    body.tool,
    body.command,
    ...(body.paths ?? []),
    ...(body.steps ?? []).map(({ title }) => title),
  ];
  const missing = more.filter((part) => part !== undefined && part !== "" && !text.includes(part));
  return missing.length === 0 ? text : [...missing, text].join("\n");
}

/**
 * Returns whether the term's words occur at one position of a text. `wordAt(0)` returns the word at that
 * position, `wordAt(n)` the nth word after it.
 */
export function isTermAt({ words, isPrefix }: Term, wordAt: (n: number) => string): boolean {
  const last = words.length - 1;
  return words.every((word, n) => (n === last && isPrefix ? wordAt(n).startsWith(word) : wordAt(n) === word));
}

/** Returns whether all words are ASCII, whatever characters separate them. */
export function isPlain(text: string): boolean {
  return isAscii(text) || !WIDE_WORD.test(text);
}

const WIDE_WORD = /(?![\p{ASCII}])[\p{L}\p{N}\p{M}]/u;
const PLAIN_RUN = /[0-9a-z]+/g;
/** Matches runs of characters that may be words. It is quick, because it needs no Unicode tables. */
const RUN = /[0-9A-Za-z\u0080-\uffff]+/g;
// oxlint-disable-next-line no-control-regex -- ASCII includes the control characters.
const ASCII = /^[\u0000-\u007f]*$/;
const ALONE = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u30fc\uff70`;
const PIECE = new RegExp(
  String.raw`[[${ALONE}]&&[\p{L}\p{N}]]\p{M}*|[[\p{L}\p{N}]--[${ALONE}]][[\p{L}\p{N}\p{M}]--[${ALONE}]]*`,
  "gv",
);
const ACCENTS = /[\u0300-\u036f\ufe00-\ufe0f]/g;

function* spansIn(run: string, offset: number): Generator<Span> {
  for (const found of run.matchAll(PIECE)) {
    const [piece] = found;
    const start = offset + found.index;
    if (isIdeograph(piece)) {
      yield { word: piece, start, end: start + 1 };
      continue;
    }
    // Folding may split a piece into several words: `½` becomes `1` and `2`.
    for (const [word] of folded(piece).matchAll(PIECE))
      yield { word: firstChars(word, WORD_MAX), start, end: start + piece.length };
  }
}

/** True for a common Han character. It folds to itself, so Chinese text needs no slow folding. */
function isIdeograph(piece: string): boolean {
  const code = piece.charCodeAt(0);
  return piece.length === 1 && ((code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf));
}

function folded(piece: string): string {
  if (isAscii(piece)) return lower(piece);
  return piece
    .normalize("NFKD")
    .replaceAll(ACCENTS, "")
    .toLowerCase()
    .replaceAll(ACCENTS, "")
    .replaceAll("ß", "ss")
    .replaceAll("ς", "σ")
    .normalize("NFC");
}

function isAscii(text: string): boolean {
  return ASCII.test(text);
}

function lower(word: string): string {
  return word.toLowerCase();
}
