import { slowness } from "../../scripts/slowness.ts";

/**
 * A time limit, given for an idle machine. When the limit is reached, the slowness of the machine is
 * measured, and the limit is extended accordingly.
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
