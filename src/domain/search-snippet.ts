import type { Term } from "./search-query.ts";
import { matchesIn } from "./search-rank.ts";
import { type Span, spansOf } from "./words.ts";

export interface Snippet {
  /** One line. */
  readonly text: string;
  /** What was searched for: from which character to which, the last not included. */
  readonly marks: readonly (readonly [from: number, to: number])[];
}

const LENGTH = 200;
/** What stands before the first mark. */
const LEAD = 50;

/** The part of a text in which most of the terms stand, on one line, with their places. */
export function snippetOf(text: string, terms: readonly Term[]): Snippet {
  const spans = [...spansOf(text)];
  const matches = matchesIn(
    spans.map(({ word }) => word),
    terms,
  );
  const found = matches.map(({ term, from, to }) => ({
    term,
    start: spans[from]!.start,
    end: spans[to - 1]!.end,
  }));
  const from = beginning(text, spans, bestStart(found));
  const to = ending(text, spans, from);
  const marks = found.filter(({ start, end }) => start >= from && end <= to);
  return onOneLine(text.slice(from, to), {
    marks: merged(marks.map(({ start, end }) => [start - from, end - from])),
    isBegin: from === 0,
    isEnd: to >= text.length,
  });
}

interface Found {
  readonly term: number;
  readonly start: number;
  readonly end: number;
}

/** The match from which on most different terms follow within one snippet; the first of equals. */
function bestStart(found: readonly Found[]): number {
  let best = { start: 0, count: 0 };
  const within = new Map<number, number>();
  let last = 0;
  for (const { term, start } of found) {
    for (; last < found.length && found[last]!.end <= start + LENGTH - LEAD; last++) {
      const next = found[last]!;
      within.set(next.term, (within.get(next.term) ?? 0) + 1);
    }
    if (within.size > best.count) best = { start, count: within.size };
    const left = (within.get(term) ?? 0) - 1;
    if (left > 0) within.set(term, left);
    else within.delete(term);
  }
  return best.start;
}

/** A little before the match, at the beginning of a word. */
function beginning(text: string, spans: readonly Span[], start: number): number {
  const wanted = start - LEAD;
  if (wanted <= 0 || text.length <= LENGTH) return 0;
  return spans.find((span) => span.start >= wanted)?.start ?? wanted;
}

/** At the end of a word, unless that word alone is longer than all there is room for. */
function ending(text: string, spans: readonly Span[], from: number): number {
  const wanted = from + LENGTH;
  if (wanted >= text.length) return text.length;
  const cut = spans.find((span) => span.start < wanted && span.end > wanted && span.start > from);
  return cut === undefined ? withoutHalf(text, wanted) : cut.start;
}

/** Never between two surrogates. */
function withoutHalf(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

type Mark = readonly [from: number, to: number];

/** Marks in order, those that touch or overlap as one. */
function merged(marks: readonly Mark[]): Mark[] {
  const sorted = marks.toSorted((a, b) => a[0] - b[0] || b[1] - a[1]);
  const out: [number, number][] = [];
  for (const [from, to] of sorted) {
    const last = out.at(-1);
    if (last !== undefined && from < last[1]) last[1] = Math.max(last[1], to);
    else out.push([from, to]);
  }
  return out;
}

/** White space and what no line should hold become one space; the marks move along. */
function onOneLine(text: string, at: { marks: readonly Mark[]; isBegin: boolean; isEnd: boolean }): Snippet {
  let line = at.isBegin ? "" : "…";
  const places: number[] = [];
  let isSpace = true;
  for (const character of text) {
    const isBlank = BLANK.test(character);
    for (let unit = 0; unit < character.length; unit++) places.push(line.length + (isBlank ? 0 : unit));
    if (!isBlank) line += character;
    else if (!isSpace) line += " ";
    isSpace = isBlank;
  }
  places.push(line.length);
  const marks = at.marks.map(([from, to]) => [places[from] ?? 0, places[to] ?? 0] as const);
  return { text: `${line.trimEnd()}${at.isEnd ? "" : "…"}`, marks };
}

const BLANK = /[\s\p{Cc}\p{Cf}\u2028\u2029]/u;
