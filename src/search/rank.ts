import type { Found } from "./find.ts";

/** One term's entries, newest first. */
export interface TermList<K> {
  readonly found: readonly { readonly key: K; readonly at: number }[];
  /** There are older ones as well. */
  readonly isCut: boolean;
  /** Others that are known to hold it too. */
  readonly also: readonly { readonly key: K; readonly at: number }[];
  /** What part of all entries holds the term, as far as is known. */
  readonly share: number;
}

/** A term that few entries hold says more. */
export function weightOf(share: number): number {
  return Math.log(1 + (1 - share + SHARE_MIN) / (share + SHARE_MIN));
}

/**
 * Candidates by what can be told from the lists alone: the weights of the terms that each holds, and its
 * age. Where a list was cut before a candidate's time, the term counts by how likely it is.
 */
export function roughOrder<K>(lists: readonly TermList<K>[], now: number): K[] {
  const candidates = new Map<K, Candidate<K>>();
  const unknown = lists
    .filter(({ isCut }) => isCut)
    .map(({ found, share }) => ({ before: found.at(-1)?.at ?? 0, sum: weightOf(share) * share }));
  const add = (key: K, at: number, weight: number): void => {
    const known = candidates.get(key);
    if (known === undefined) candidates.set(key, { key, at, score: weight + likely(unknown, at) });
    else known.score += weight;
  };
  for (const { found, share, also } of lists) {
    const weight = weightOf(share);
    for (const { key, at } of found) add(key, at, weight);
    // Below the end of the list it has been counted as likely.
    const before = found.at(-1)?.at ?? 0;
    for (const { key, at } of also) add(key, at, at < before ? weight * (1 - share) : weight);
  }
  const order = [...candidates.values()];
  for (const each of order) each.score *= recency(now - each.at);
  order.sort((a, b) => b.score - a.score || b.at - a.at);
  return order.map(({ key }) => key);
}

interface Candidate<K> {
  readonly key: K;
  readonly at: number;
  score: number;
}

function likely(unknown: readonly { before: number; sum: number }[], at: number): number {
  let sum = 0;
  for (const each of unknown) if (at < each.before) sum += each.sum;
  return sum;
}

/** Okapi BM25 over one entry's text, more where words of the query stand side by side, less with age. */
export function scoreOf(
  of: { text: string; found: readonly Found[]; ageMs: number; has: readonly number[] },
  weights: readonly number[],
): number {
  const counts = weights.map(() => 0);
  for (const { term } of of.found) counts[term] = (counts[term] ?? 0) + 1;
  // A term that stands beyond what was read of a long entry is there once at least.
  for (const term of of.has) counts[term] = Math.max(1, counts[term] ?? 0);
  const norm = K1 * (1 - B + (B * of.text.length) / LENGTH_USUAL);
  const sum = counts.reduce(
    (total, count, term) => total + ((weights[term] ?? 0) * count * (K1 + 1)) / (count + norm),
    0,
  );
  return (sum + adjacency(of, weights)) * recency(of.ageMs);
}

/** Pairs of the query's neighbours that are neighbours here too, each counted once. */
function adjacency(of: { text: string; found: readonly Found[] }, weights: readonly number[]): number {
  const pairs = new Set<number>();
  for (const [at, { term, end }] of of.found.entries()) {
    const next = of.found[at + 1];
    if (next?.term === term + 1 && isNothing(of.text.slice(end, next.start))) pairs.add(term);
  }
  let sum = 0;
  for (const term of pairs) sum += Math.min(weights[term] ?? 0, weights[term + 1] ?? 0);
  return sum * NEIGHBOURS;
}

/** What stands between two words that are side by side. */
function isNothing(between: string): boolean {
  return between.length <= GAP_MAX && !/[\p{L}\p{N}]/u.test(between);
}

/** From 1 for what is new down to a half for what is old. */
function recency(ageMs: number): number {
  return 0.5 + 0.5 * 2 ** (-Math.max(0, ageMs) / HALF_MS);
}

const K1 = 1.2;
const B = 0.75;
/** An entry of this many characters is neither short nor long. */
const LENGTH_USUAL = 600;
const GAP_MAX = 8;
const NEIGHBOURS = 0.5;
const HALF_MS = 30 * 86_400_000;
/** No share is known better than this. */
const SHARE_MIN = 1e-7;
