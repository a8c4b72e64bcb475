/** Returns the candidates that a mistyped word most likely meant, best first; empty if none is close. */
export function nearest(word: string, candidates: readonly string[], atMost = 3): string[] {
  const wanted = comparable(word);
  const distanceMax = Math.max(1, Math.floor(wanted.length / 3));
  return [...new Set(candidates)]
    .map((candidate) => ({ candidate, distance: closeness(wanted, comparable(candidate)) }))
    .filter(({ distance }) => distance <= distanceMax)
    .toSorted((a, b) => a.distance - b.distance || a.candidate.localeCompare(b.candidate))
    .slice(0, atMost)
    .map(({ candidate }) => candidate);
}

export function byNearness(word: string, candidates: readonly string[]): string[] {
  const wanted = comparable(word);
  return candidates
    .map((candidate) => ({ candidate, distance: editDistance(wanted, comparable(candidate)) }))
    .toSorted((a, b) => a.distance - b.distance)
    .map(({ candidate }) => candidate);
}

/** Counts insertions, deletions, substitutions and swaps of neighbours. */
export function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min(row[j - 1]! + 1, last[j]! + 1, last[j - 1]! + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, before[j - 2]! + 1);
      }
      row.push(least);
    }
    before = last;
    last = row;
  }
  return last[b.length]!;
}

/** A candidate that contains the word counts as one edit away. */
function closeness(word: string, candidate: string): number {
  const distance = editDistance(word, candidate);
  return distance > 1 && word.length >= PART_MIN && candidate.includes(word) ? 1 : distance;
}

/** Ignores case, dashes, underscores and spaces, and everything after the first `COMPARED_MAX` characters. */
function comparable(word: string): string {
  return word
    .slice(0, COMPARED_MAX)
    .toLowerCase()
    .replaceAll(/[-_\s]/g, "");
}

/** The minimum length of a word to look for inside candidates. Shorter words occur in too many of them. */
const PART_MIN = 3;
const COMPARED_MAX = 80;
