import type { Term } from "./query.ts";
import { isPlain, isTermAt, spansOf, WORD_MAX } from "./words.ts";

/** An occurrence of a term: the term's index in the list, and its range; `end` is exclusive. */
export interface Found {
  readonly term: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Returns every occurrence of the terms in a text, in order, by the rules of the index. Most texts are plain
 * enough to be searched without splitting them into words.
 */
export function findTerms(text: string, terms: readonly Term[]): Found[] {
  const found = isPlain(text) ? inPlainText(text.toLowerCase(), terms) : inAnyText(text, terms);
  return found.sort((a, b) => a.start - b.start || a.end - b.end || a.term - b.term);
}

function inPlainText(text: string, terms: readonly Term[]): Found[] {
  const found: Found[] = [];
  for (const [term, { words, isPrefix }] of terms.entries()) {
    const first = words[0] ?? "";
    for (let start = text.indexOf(first); start >= 0; start = text.indexOf(first, start + 1)) {
      if (isWordAt(text, start - 1)) continue;
      const end = endOf(text, start, { words, isPrefix });
      if (end !== null) found.push({ term, start, end });
    }
  }
  return found;
}

/** Returns the end of a term that starts at `start`, or null if the term is not there. */
function endOf(text: string, start: number, { words, isPrefix }: Term): number | null {
  let at = start;
  for (const [n, word] of words.entries()) {
    if (n > 0) {
      if (isWordAt(text, at)) return null;
      while (at < text.length && !isWordAt(text, at)) at += 1;
    }
    if (!text.startsWith(word, at)) return null;
    at += word.length;
    const mayGoOn = word.length >= WORD_MAX || (isPrefix && n === words.length - 1);
    if (mayGoOn) while (isWordAt(text, at)) at += 1;
    else if (isWordAt(text, at)) return null;
  }
  return at;
}

/** True for a digit or a lower-case ASCII letter. */
function isWordAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57);
}

function inAnyText(text: string, terms: readonly Term[]): Found[] {
  const spans = [...spansOf(text)];
  const found: Found[] = [];
  const byFirst = Map.groupBy(terms.keys(), (term) => terms[term]?.words[0]?.charCodeAt(0) ?? 0);
  for (const [from, { word, start }] of spans.entries()) {
    for (const term of byFirst.get(word.charCodeAt(0)) ?? []) {
      const wanted = terms[term]!;
      if (!isTermAt(wanted, (n) => spans[from + n]?.word ?? "")) continue;
      found.push({ term, start, end: spans[from + wanted.words.length - 1]!.end });
    }
  }
  return found;
}
