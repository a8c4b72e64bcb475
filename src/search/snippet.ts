import { type Found, findTerms } from "./find.ts";
import type { Term } from "./query.ts";
import { cutBefore } from "../text/fence.ts";

export interface Snippet {
  /** Always a single line. */
  readonly text: string;
  /** The ranges of the matches, in UTF-16 units; the end is exclusive. */
  readonly marks: readonly (readonly [from: number, to: number])[];
}

const LENGTH = 200;
/** How many characters come before the first match. */
const LEAD = 50;
/** How far to look for a space, so that no word is cut. */
const SPACE_MAX = 24;

/** Returns the part of the text that contains the most terms, as one line, with the ranges of the matches. */
export function snippetOf(text: string, terms: readonly Term[]): Snippet {
  const found = findTerms(text, terms);
  const from = beginning(text, bestStart(found));
  const to = ending(text, from);
  const marks = found.filter(({ start, end }) => start >= from && end <= to);
  return onOneLine(text.slice(from, to), {
    marks: merged(marks.map(({ start, end }) => [start - from, end - from])),
    isBegin: from === 0,
    isEnd: to >= text.length,
  });
}

/**
 * Returns where the best match starts. A snippet from the best match on contains the most different terms. If
 * several matches are equal in this, the one whose terms are closest together is best, then the first.
 */
function bestStart(found: readonly Found[]): number {
  let best = { start: 0, count: 0, extent: 0 };
  for (const [at, { start }] of found.slice(0, LOOKED_AT).entries()) {
    const terms = new Set<number>();
    let extent = 0;
    for (const next of found.slice(at, at + LOOKED_AT)) {
      if (next.end > start + LENGTH - LEAD) break;
      if (!terms.has(next.term)) extent = next.end - start;
      terms.add(next.term);
    }
    const count = Math.max(1, terms.size);
    if (count > best.count || (count === best.count && extent < best.extent)) best = { start, count, extent };
  }
  return best.start;
}

/** How many matches are compared; more would hardly improve the snippet. */
const LOOKED_AT = 200;

/** Returns where the snippet starts: a little before the match, after a space if one is near. */
function beginning(text: string, start: number): number {
  const wanted = start - LEAD;
  if (wanted <= 0 || text.length <= LENGTH) return 0;
  const space = text.slice(wanted, start).search(/\s\S/);
  return space < 0 || space > SPACE_MAX ? cutBefore(text, wanted) : wanted + space + 1;
}

/** Returns where the snippet ends: before a space if one is near, so that no word is cut. */
function ending(text: string, from: number): number {
  const wanted = from + LENGTH;
  if (wanted >= text.length) return text.length;
  const space = text.slice(wanted - SPACE_MAX, wanted + 1).search(/\s\S*$/);
  return space < 0 ? cutBefore(text, wanted) : wanted - SPACE_MAX + space;
}

type Mark = readonly [from: number, to: number];

/** Sorts the marks and joins those that overlap. */
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

/** Replaces runs of white space and control characters by one space, and moves the marks accordingly. */
function onOneLine(text: string, at: { marks: readonly Mark[]; isBegin: boolean; isEnd: boolean }): Snippet {
  let line = at.isBegin ? "" : "…";
  const before = line.length;
  if (ONE_LINE.test(text)) {
    const marks = at.marks.map(([from, to]) => [from + before, to + before] as const);
    return { text: `${line}${text}${at.isEnd ? "" : "…"}`, marks };
  }
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

/** Matches text that already is one line: printable ASCII with single spaces. */
const ONE_LINE = /^(?:[!-~]+ )*[!-~]+$/;
const BLANK = /[\s\p{Cc}\p{Cf}\u2028\u2029]/u;
