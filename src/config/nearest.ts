import { editDistance } from "../text/edit-distance.ts";

/** The candidate a person most likely meant, or null when none is close enough to name. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  const wanted = plain(word);
  let best: string | null = null;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, plain(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return bestDistance <= Math.max(1, Math.floor(wanted.length / 3)) ? best : null;
}

/** Case, dashes and underscores are how people misspell settings most often. */
function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[-_\s]/g, "");
}
