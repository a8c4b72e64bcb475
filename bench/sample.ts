/** Medians are used everywhere: on a shared machine, other processes distort every mean. */
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

/** Measures two things alternately, A B A B, so that a disturbance affects both. */
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

/** Returns the median of a/b over all rounds. Both values of a round were measured under the same load. */
export function ratio(taken: { a: readonly number[]; b: readonly number[] }): number {
  return median(taken.a.map((value, at) => value / taken.b[at]!));
}
