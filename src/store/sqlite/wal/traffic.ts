import type { Query } from "../../sql.ts";

export type Plain = <T>(work: (q: Query) => Promise<T>) => Promise<T>;

/** Who writes: those that tend the index, or anybody else, for whom they make way. */
export class Traffic {
  readonly #plain: Plain;
  #all = 0;
  #own = 0;

  constructor(plain: Plain) {
    this.#plain = plain;
  }

  /** To be asked whether others have written since it was last asked. */
  watch(): () => boolean {
    let seen = this.#all - this.#own;
    return () => {
      const before = seen;
      seen = Math.max(before, this.#all - this.#own);
      return seen > before;
    };
  }

  /** So many writes were committed together. */
  committed(writes: number): void {
    this.#all += writes;
  }

  /** A write of those that tend the index. */
  async own<T>(work: (q: Query) => Promise<T>): Promise<T> {
    // Before it is committed: for a moment there are fewer others, never more.
    this.#own += 1;
    try {
      return await this.#plain(work);
    } catch (error) {
      this.#own -= 1;
      throw error;
    }
  }
}
