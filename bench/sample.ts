/** Medians everywhere: a shared machine makes every mean a story about its neighbours. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

export function percentile(values: readonly number[], percent: number): number {
  if (values.length === 0) throw new Error("there is nothing to take a percentile of");
  const sorted = [...values].sort((a, b) => a - b);
  const at = Math.ceil((percent / 100) * sorted.length) - 1;
  return sorted[Math.max(0, at)]!;
}

export async function timeMs(work: () => Promise<unknown> | unknown): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}

/** Two things measured in turn, A B A B, so that what disturbs one disturbs the other. */
export async function inTurn(
  rounds: number,
  a: () => Promise<number>,
  b: () => Promise<number>,
): Promise<{ a: number[]; b: number[] }> {
  const taken: { a: number[]; b: number[] } = { a: [], b: [] };
  for (let round = 0; round < rounds; round++) {
    taken.a.push(await a());
    taken.b.push(await b());
  }
  return taken;
}

/** The median of each round's own ratio: both halves of a ratio met the same machine. */
export function ratio(taken: { a: readonly number[]; b: readonly number[] }): number {
  return median(taken.a.map((value, at) => value / taken.b[at]!));
}
