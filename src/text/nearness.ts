import { editDistance } from "./edit-distance.ts";

/** The candidates, those first that were most likely meant. */
export function byNearness(word: string, candidates: readonly string[]): string[] {
  const wanted = word.toLowerCase().slice(0, COMPARED_MAX);
  const distanceOf = (one: string): number => editDistance(wanted, one.toLowerCase().slice(0, COMPARED_MAX));
  return candidates
    .map((one) => ({ one, distance: distanceOf(one) }))
    .toSorted((a, b) => a.distance - b.distance)
    .map(({ one }) => one);
}

const COMPARED_MAX = 80;
