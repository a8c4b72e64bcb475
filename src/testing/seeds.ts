// The seeds of every test that draws at random. `npm test` must give the same answer twice, so it draws from
// listed seeds only. `npm run storm` and `npm run prove` look for new faults with seeds that nobody has tried.
import path from "node:path";
import * as fc from "fast-check";

const ROOT = path.join(import.meta.dirname, "../..");
const FIRST = 1;

export interface OnceRed {
  /** The test's file, from the root, with forward slashes. */
  readonly file: string;
  readonly seed: number;
  /** The fault that the seed found. */
  readonly found: string;
}

/** Seeds that once failed. A seed stays here, so that its fault cannot come back unnoticed. */
export const ONCE_RED: readonly OnceRed[] = [];

/** Returns the seeds of a test file: the first and its once-red ones, or only the one in `KINFOLD_TEST_SEED`. */
export function seedsOf(file: string): readonly number[] {
  const given = process.env["KINFOLD_TEST_SEED"];
  if (given !== undefined) return [checkedSeed(given)];
  const own = path.relative(ROOT, file).replaceAll(path.sep, "/");
  return [FIRST, ...ONCE_RED.filter((each) => each.file === own).map(({ seed }) => seed)];
}

/** Checks a property of fast-check with each seed of a test file. */
export function checkProperty<Ts>(file: string, property: fc.IAsyncProperty<Ts>, runs?: Runs): Promise<void>;
export function checkProperty<Ts>(file: string, property: fc.IProperty<Ts>, runs?: Runs): void;
export function checkProperty<Ts>(
  file: string,
  property: fc.IRawProperty<Ts>,
  runs: Runs = {},
): Promise<void> | void {
  const checks = seedsOf(file).map((seed) => () => fc.assert(property, { ...runs, seed }));
  if (!property.isAsync()) return checks.forEach((check) => void check());
  return checks.reduce((before, check) => before.then(check), Promise.resolve());
}

export interface Runs {
  readonly numRuns?: number;
}

/** Returns a pseudo-random generator of numbers from 0 up to 1; the same seed gives the same numbers. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Draws a seed that no list has. The caller prints it, so that the run can be repeated. */
export function newSeed(): number {
  return Math.floor(Math.random() * 2 ** 31);
}

/** Returns the seed in a text, which is the value of a variable or an option. */
export function checkedSeed(text: string): number {
  if (/^\d{1,10}$/.test(text) && Number(text) < 2 ** 32) return Number(text);
  throw new Error(`"${text}" is not a seed. Give a whole number from 0 to ${2 ** 32 - 1}.`);
}
