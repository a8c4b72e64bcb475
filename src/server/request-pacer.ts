/** How many requests begin in one turn of the event loop. */
const PER_TURN = 4;

/**
 * Lets requests begin a few at a time. Hundreds may arrive in one turn of the event loop, and begun together they
 * would hold it until the last of them has been looked at: between turns others are served. A request that comes
 * alone begins at once.
 */
export class RequestPacer {
  readonly #waiting: (() => void)[] = [];
  #begun = 0;
  #isTurning = false;

  enter(begin: () => void): void {
    this.#turn();
    if (this.#begun >= PER_TURN) {
      this.#waiting.push(begin);
      return;
    }
    this.#begun += 1;
    begin();
  }

  /** Resolves when it is the caller's turn. */
  passed(): Promise<void> {
    return new Promise((resolve) => this.enter(resolve));
  }

  #turn(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    setImmediate(() => {
      this.#isTurning = false;
      const next = this.#waiting.splice(0, PER_TURN);
      this.#begun = next.length;
      if (next.length > 0) this.#turn();
      for (const begin of next) begin();
    });
  }
}
