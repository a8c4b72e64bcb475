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
  return edits(word, candidate);
}

/** Insertions, deletions, changes and swaps of neighbours. */
function edits(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const above = rows[i - 1] ?? [];
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(at(above, j) + 1, at(row, j - 1) + 1, at(above, j - 1) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, at(rows[i - 2] ?? [], j - 2) + 1);
      }
      row.push(best);
    }
    rows.push(row);
  }
  return at(rows[a.length] ?? [], b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
