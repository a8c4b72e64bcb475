/**
 * Writes of one tree wait for each other here rather than in the server, where each would hold a
 * connection of the pool while it waits for the tree's row.
 */
export class TreeQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  waiting = 0;

  run<T>(rootId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(rootId);
    const own = before === undefined ? work() : before.then(work, work);
    this.#last.set(rootId, own);
    this.waiting += 1;
    const forget = () => {
      this.waiting -= 1;
      if (this.#last.get(rootId) === own) this.#last.delete(rootId);
    };
    own.then(forget, forget);
    return own;
  }

  /** Resolves when everything that was taken has ended. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.allSettled(this.#last.values());
  }
}
