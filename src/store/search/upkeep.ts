import { setImmediate as turn } from "node:timers/promises";
import type { Log } from "../../log.ts";
import type { Query } from "../sql.ts";

/** How a database maintains its index. Each step is one short write. */
export interface UpkeepSteps {
  /** Indexes up to `limit` entries that were written without an index, and returns how many it indexed. */
  index(q: Query, limit: number): Promise<number>;
  /** The target duration of an indexing step, in milliseconds; `limit` is adapted to it. */
  readonly indexMs: number;
  /** True if other processes may write to this database without notifying this process. */
  readonly isShared: boolean;
  /** Merges parts of the index for some milliseconds. Returns false when nothing is left to merge. */
  merge(q: Query, how: { ms: number; isQuiet: boolean }): Promise<boolean>;
}

const SLICE_MAX = 64;
/** The pauses between two indexing steps: the first while others write, the second while nobody does. */
const PAUSE_MS = 50;
const PAUSE_ALONE_MS = 1;
/** Each write adds a part to the index. Merging starts when there are this many new parts. */
const PARTS_MIN = 8;
const MERGE_MS = 2;
/** From this many new parts on, merging takes longer steps to catch up: each part slows every search down. */
const PARTS_MANY = 24;
const MERGE_LONG_MS = 5;
/** When nobody else has written for this long, the parts are merged into as few as possible. */
const QUIET_MS = 2_000;
const QUIET_PAUSE_MS = 4;
const RETRY_MS = 30_000;

/**
 * Maintains the search index in short writes between the writes of others. It indexes entries that were
 * written without an index, for example by an import. It also merges the parts of the index: some of them
 * when there are many, all of them in quiet moments. Otherwise the database would merge in the middle of
 * somebody's write.
 */
export class IndexUpkeep {
  readonly #write: <T>(work: (q: Query) => Promise<T>) => Promise<T>;
  readonly #steps: UpkeepSteps;
  readonly #log: Log;
  readonly #running: Promise<void>;
  #isClosed = false;
  #wake = (): void => undefined;
  /** True if entries may lack an index. True at the start: the last daemon may have been killed. */
  #isBehind = true;
  #slice = 8;
  #indexAt = performance.now() + PAUSE_MS;
  #isGrown = false;
  #parts = 0;
  #isMerging = false;
  /** True if nothing was added since everything was merged. */
  #isTidy = false;
  #tidyAt = 0;
  #retryAt = 0;
  #writes = { all: 0, own: 0, others: 0, othersAt: performance.now() };

  constructor(write: <T>(work: (q: Query) => Promise<T>) => Promise<T>, steps: UpkeepSteps, log: Log) {
    this.#write = write;
    this.#steps = steps;
    this.#log = log;
    this.#running = this.#run();
  }

  /** Call it when entries were written without an index. */
  behind(): void {
    this.#isBehind = true;
    this.#wake();
  }

  /** Call it during a write that adds to the index. */
  grown(): void {
    this.#isGrown = true;
  }

  /** Call it when this many writes were committed together. */
  committed(count: number): void {
    const writes = this.#writes;
    writes.all += count;
    if (writes.all - writes.own > writes.others) {
      writes.others = writes.all - writes.own;
      writes.othersAt = performance.now();
    }
    if (!this.#isGrown) return;
    this.#isGrown = false;
    this.#parts += 1;
    const isDue = this.#parts >= PARTS_MIN && !this.#isMerging;
    if (isDue) {
      this.#isMerging = true;
      this.#parts = 0;
    }
    if (isDue || this.#isTidy) this.#wake();
    this.#isTidy = false;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      const ms = this.#dueAt() - performance.now();
      if (ms > 0) {
        await this.#pause(ms);
        continue;
      }
      await turn();
      try {
        await this.#step();
      } catch (error) {
        if (this.#isClosed) return;
        this.#log.warn({ error: String(error) }, "search index upkeep failed; it is retried");
        this.#isBehind = true;
        this.#isTidy = false;
        this.#retryAt = performance.now() + RETRY_MS;
      }
    }
  }

  #dueAt(): number {
    const indexAt = this.#isBehind ? this.#indexAt : Infinity;
    const tidyAt = this.#isTidy ? Infinity : Math.max(this.#tidyAt, this.#writes.othersAt + QUIET_MS);
    const dueAt = this.#isMerging ? 0 : this.#isBehind ? indexAt : tidyAt;
    return Math.max(dueAt, this.#retryAt);
  }

  async #step(): Promise<void> {
    const isIndexDue = this.#isBehind && performance.now() >= this.#indexAt;
    if (this.#isMerging) this.#isMerging = await this.#merge(false);
    else if (!isIndexDue) return this.#tidy();
    if (isIndexDue) await this.#index();
  }

  async #index(): Promise<void> {
    const { indexMs, isShared } = this.#steps;
    const isAlone = !isShared && performance.now() - this.#writes.othersAt > PAUSE_MS;
    let tookMs = 0;
    // Reset before the write, because entries added during the write set it again.
    this.#isBehind = false;
    const count = await this.#own(async (q) => {
      const from = performance.now();
      const indexed = await this.#steps.index(q, this.#slice);
      tookMs = performance.now() - from;
      if (indexed > 0) this.grown();
      return indexed;
    });
    if (count > 0) {
      this.#isBehind = true;
      // The parts are merged in a quiet moment, not right after the last entry was indexed.
      this.#tidyAt = performance.now() + QUIET_MS;
    }
    this.#slice = tookMs > indexMs ? Math.max(1, this.#slice >> 1) : Math.min(SLICE_MAX, this.#slice + 1);
    this.#indexAt = performance.now() + (isAlone ? PAUSE_ALONE_MS : PAUSE_MS);
  }

  async #tidy(): Promise<void> {
    // Set before the write, because additions during the write reset it.
    this.#isTidy = true;
    if (await this.#merge(true)) this.#isTidy = false;
    this.#tidyAt = performance.now() + QUIET_PAUSE_MS;
  }

  #merge(isQuiet: boolean): Promise<boolean> {
    const ms = this.#parts < PARTS_MANY ? MERGE_MS : MERGE_LONG_MS;
    return this.#own((q) => this.#steps.merge(q, { ms, isQuiet }));
  }

  async #own<T>(work: (q: Query) => Promise<T>): Promise<T> {
    // Counted before the commit; otherwise `committed` would count this write as a write of others.
    this.#writes.own += 1;
    try {
      return await this.#write(work);
    } catch (error) {
      this.#writes.own -= 1;
      throw error;
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = ms === Infinity ? undefined : setTimeout(resolve, ms).unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
