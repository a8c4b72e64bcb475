import { editDistance } from "../text/edit-distance.ts";

/** The candidates that a mistyped word most likely meant, best first. */
export function nearest(word: string, candidates: readonly string[], atMost = 3): string[] {
  const wanted = word.toLowerCase();
  const limit = Math.max(1, Math.floor(wanted.length / 2));
  return [...new Set(candidates)]
    .map((candidate) => ({ candidate, distance: closeness(wanted, candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= limit)
    .toSorted((a, b) => a.distance - b.distance || a.candidate.localeCompare(b.candidate))
    .slice(0, atMost)
    .map(({ candidate }) => candidate);
}

/** A part of a name counts as close as one slip of the finger. */
function closeness(word: string, candidate: string): number {
  if (word.length >= 2 && (candidate.startsWith(word) || candidate.includes(word))) return 1;
  return editDistance(word, candidate);
}
