import type { Found } from "./find.ts";

export interface Candidate {
  /** Identifies the entry in a cursor. A later entry has a greater position; drafts have the greatest. */
  readonly position: string;
  readonly at: number;
}

/** The newest entries that match one expression, newest first. */
export interface CandidateList {
  readonly found: readonly Candidate[];
  /** True if older matches were left out. */
  readonly isCut: boolean;
  /** Indexes of the query's terms that every entry of the list is known to contain. */
  readonly terms: readonly number[];
}

/**
 * Returns each list's weight. A rare term weighs more. The weights are estimated without counting entries in
 * the database. The function counts the candidates in the shortest period that a list covers, and assumes
 * that a longer period has proportionally more.
 */
export function weightsOf(lists: readonly CandidateList[]): number[] {
  const all = new Map<string, number>();
  for (const { found } of lists) for (const { position, at } of found) all.set(position, at);
  if (lists.length === 1 || all.size === 0) return lists.map(() => 1);
  const newest = Math.max(...all.values());
  const oldest = Math.min(...all.values());
  const reaches = lists.map(({ found, isCut }) => newest - ((isCut ? found.at(-1)?.at : null) ?? oldest));
  const least = Math.min(...reaches);
  let count = 0;
  for (const at of all.values()) if (newest - at <= least) count += 1;
  return lists.map(({ found: { length } }, index) => {
    const among = (count * (reaches[index]! + MOMENT_MS)) / (least + MOMENT_MS);
    return Math.log(1 + (Math.max(0, among - length) + 0.5) / (length + 0.5));
  });
}

/** BM25 for one entry. Adjacent query words that are adjacent in the text raise the score; age lowers it. */
export function scoreOf(
  of: { text: string; found: readonly Found[]; ageMs: number; has: readonly number[] },
  weights: readonly number[],
): number {
  const counts = weights.map(() => 0);
  for (const { term } of of.found) counts[term] = (counts[term] ?? 0) + 1;
  // Only the beginning of a long entry was read. A term that the index found only in the rest counts once.
  for (const term of of.has) counts[term] = Math.max(1, counts[term] ?? 0);
  const norm = K1 * (1 - B + (B * of.text.length) / LENGTH_USUAL);
  const sum = counts.reduce(
    (total, count, term) => total + ((weights[term] ?? 0) * count * (K1 + 1)) / (count + norm),
    0,
  );
  return (sum + adjacency(of, weights)) * recency(of.ageMs);
}

/** Returns a bonus for each pair of adjacent query words that are adjacent in the text. */
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

/** Whether only punctuation or space separates two words. */
function isNothing(between: string): boolean {
  return between.length <= GAP_MAX && !/[\p{L}\p{N}]/u.test(between);
}

/** Returns a factor that falls from 1 for a new entry to a half for an old one. */
export function recency(ageMs: number): number {
  return 0.5 + 0.5 * 2 ** (-Math.max(0, ageMs) / HALF_MS);
}

/** Added to the length of each period, to avoid dividing by zero if a period has no length. */
const MOMENT_MS = 1_000;
const K1 = 1.2;
const B = 0.75;
/** The average length in characters that BM25 assumes. */
const LENGTH_USUAL = 600;
const GAP_MAX = 8;
const NEIGHBOURS = 0.5;
const HALF_MS = 30 * 86_400_000;
