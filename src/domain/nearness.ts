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
