import { slowness } from "../../scripts/slowness.ts";

/**
 * A time limit that is meant for an idle machine. When it is reached, measures how slow the machine is now,
 * and extends the limit by that factor.
 */
export class Patience {
  readonly #startedAt = performance.now();
  readonly #timeoutMs: number;
  #factor = 1;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  isOver(): boolean {
    const passedMs = performance.now() - this.#startedAt;
    if (passedMs <= this.#timeoutMs * this.#factor) return false;
    const measured = slowness();
    if (measured <= this.#factor) return true;
    this.#factor = measured;
    return passedMs > this.#timeoutMs * measured;
  }
}
