import { randomFrom } from "../../src/testing/seeds.ts";

/**
 * Seeded random choices. Each part of a storm has its own stream, so that the timing of one part does not
 * change the choices of another.
 */
export class Chance {
  readonly #next: () => number;

  constructor(seed: number, part: string) {
    let mixed = seed >>> 0;
    for (const letter of part) mixed = Math.imul(mixed ^ letter.charCodeAt(0), 0x01000193) >>> 0;
    this.#next = randomFrom(mixed);
  }

  /** Returns an integer from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.#next() * (high - low + 1));
  }

  is(probability: number): boolean {
    return this.#next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[Math.floor(this.#next() * items.length)];
    if (item === undefined) throw new Error("there is nothing to pick from");
    return item;
  }

  /** Returns one of the names, each with a probability proportional to its weight. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name {
    const names = Object.keys(weights) as Name[];
    let left = this.#next() * names.reduce((sum, name) => sum + weights[name], 0);
    for (const name of names) {
      left -= weights[name];
      if (left < 0) return name;
    }
    return names.at(-1)!;
  }

  hex(): string {
    return Math.floor(this.#next() * 2 ** 32)
      .toString(16)
      .padStart(8, "0");
  }
}
