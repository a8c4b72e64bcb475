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

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
