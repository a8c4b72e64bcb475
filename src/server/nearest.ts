import { editDistance } from "../text/edit-distance.ts";

/** The candidate that was most likely meant, or null when none is close enough to name. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const wanted = fold(word);
  if (wanted.length > 60) return null;
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(wanted, fold(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance);
  const best = ranked[0];
  if (best === undefined || best.distance > Math.max(1, Math.floor(wanted.length / 3))) return null;
  return best.candidate;
}

/** Keys are the same when they differ only in case and underscores. */
export function fold(key: string): string {
  return key.toLowerCase().replaceAll("_", "");
}
