import type { DatabaseSync, StatementSync } from "node:sqlite";
import { closing, FOREIGN_AWAIT } from "../around-write.ts";
import { BUSY, codeOf, translated } from "./failure.ts";

/** A write in progress: `start` runs it in a savepoint, `revoke` makes its transaction unusable. */
export interface Write<T> {
  start(): Promise<T>;
  revoke(reason: string): void;
}

interface Waiting {
  readonly write: Write<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  value?: unknown;
}

/** A group of writes ends after this long, so that it does not block the event loop. */
const GROUP_MS = 4;
const GROUP_MAX = 256;
/** At most this many writers are answered per event-loop turn: each then continues its work in that turn. */
const ANSWERS_PER_TURN = 8;
/** How long to retry while another program has locked the database. Retries do not block the event loop. */
const BUSY_MS = 5_000;
const BUSY_RETRY_MS = 10;

/**
 * The only way to write. Writes run one after another, each in a savepoint, and share one COMMIT. Their
 * callers are answered after the COMMIT. A write that throws rolls back only its own savepoint.
 *
 * Everything that a write may await is already settled, so a write ends within the microtasks of the task it
 * began in. A write that has not ended by then awaits something else. It is rolled back and revoked, because
 * it would block every other writer.
 */
export class WriteLane {
  readonly #db: DatabaseSync;
  readonly #path: string;
  readonly #afterCommit: (writes: readonly Write<unknown>[]) => void;
  readonly #queue: Waiting[] = [];
  /** Pending answers to finished writes, oldest first. */
  readonly #answers: (() => void)[] = [];
  readonly #statement: Record<"begin" | "commit" | "savepoint" | "release" | "undo", StatementSync>;
  #draining = false;
  #watched = false;
  #stuck: (() => void) | null = null;
  #closed = false;
  #paused: Promise<void> | null = null;
  #idle: (() => void) | null = null;

  constructor(
    db: DatabaseSync,
    options: { path: string; afterCommit: (writes: readonly Write<unknown>[]) => void },
  ) {
    this.#db = db;
    this.#path = options.path;
    this.#afterCommit = options.afterCommit;
    this.#statement = {
      begin: db.prepare("BEGIN IMMEDIATE"),
      commit: db.prepare("COMMIT"),
      savepoint: db.prepare("SAVEPOINT one"),
      release: db.prepare("RELEASE one"),
      undo: db.prepare("ROLLBACK TO one"),
    };
  }

  get waiting(): number {
    return this.#queue.length;
  }

  run<T>(write: Write<T>): Promise<T> {
    if (this.#closed) return Promise.reject(closing("changed"));
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ write, resolve: resolve as (value: unknown) => void, reject });
      this.#schedule();
    });
  }

  /** Starts no further writes until the promise settles. Writes that arrive meanwhile wait. */
  pauseUntil(until: Promise<void>): void {
    const paused = until.finally(() => {
      if (this.#paused === paused) this.#paused = null;
    });
    this.#paused = paused;
  }

  /** Refuses new writes, and resolves when all earlier ones are answered. */
  async close(): Promise<void> {
    this.#closed = true;
    if (!this.#draining) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  /** Writes requested within one turn of the event loop share a commit. */
  #schedule(): void {
    if (this.#draining) return;
    this.#draining = true;
    setImmediate(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    // Writes must start in a microtask. Only then does the nextTick callback of `#watchMicrotasks` run after
    // all pending microtasks.
    await this.#paused;
    if (await this.#begin()) await this.#group();
    if (this.#queue.length > 0) {
      setImmediate(() => void this.#drain());
      return;
    }
    this.#draining = false;
    this.#idle?.();
  }

  /** Returns false if the database stayed locked; all waiting writes were then refused. */
  async #begin(): Promise<boolean> {
    const deadline = performance.now() + BUSY_MS;
    for (;;) {
      try {
        this.#statement.begin.run();
        return true;
      } catch (error) {
        if (codeOf(error) !== BUSY || performance.now() > deadline) {
          for (const waiting of this.#queue.splice(0)) waiting.reject(translated(error, this.#path));
          return false;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, BUSY_RETRY_MS));
    }
  }

  async #group(): Promise<void> {
    const until = performance.now() + GROUP_MS;
    const done: Waiting[] = [];
    const failed: (() => void)[] = [];
    do {
      const waiting = this.#queue.shift();
      if (waiting === undefined) break;
      const failure = await this.#one(waiting);
      if (failure === null) done.push(waiting);
      else failed.push(() => waiting.reject(translated(failure.error, this.#path)));
      // After errors such as a full disk, SQLite rolls back the whole group, so its earlier writes fail too.
      if (!this.#db.isTransaction) this.#refuse(done.splice(0), failure?.error);
    } while (this.#db.isTransaction && done.length < GROUP_MAX && performance.now() < until);
    if (this.#db.isTransaction) this.#commit(done);
    // Failures are answered after the commit. A write may fail because of an earlier write in its group, and
    // its caller must then be able to see the earlier write.
    this.#answers.push(...failed);
    await this.#answer();
  }

  async #one(waiting: Waiting): Promise<{ error: unknown } | null> {
    try {
      this.#statement.savepoint.run();
      waiting.value = await this.#watch(waiting.write);
      this.#statement.release.run();
      return null;
    } catch (error) {
      this.#undo();
      return { error };
    }
  }

  #undo(): void {
    if (!this.#db.isTransaction) return;
    try {
      this.#statement.undo.run();
      this.#statement.release.run();
    } catch {
      // The savepoint alone could not be rolled back, so the whole transaction must be. `#group` checks this.
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
    }
  }

  #watch(write: Write<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const stuck = () => {
        write.revoke(FOREIGN_AWAIT);
        reject(new Error(FOREIGN_AWAIT));
      };
      this.#stuck = stuck;
      const ended = () => {
        if (this.#stuck === stuck) this.#stuck = null;
      };
      write.start().then(
        (value) => {
          ended();
          resolve(value);
        },
        (error: unknown) => {
          ended();
          reject(error);
        },
      );
      this.#watchMicrotasks();
    });
  }

  #watchMicrotasks(): void {
    if (this.#watched) return;
    this.#watched = true;
    process.nextTick(() => {
      this.#watched = false;
      const stuck = this.#stuck;
      this.#stuck = null;
      stuck?.();
    });
  }

  #commit(done: readonly Waiting[]): void {
    try {
      this.#statement.commit.run();
    } catch (error) {
      this.#refuse(done, error);
      return;
    }
    this.#afterCommit(done.map((waiting) => waiting.write));
    this.#answers.push(...done.map((waiting) => () => waiting.resolve(waiting.value)));
  }

  /** Answers all finished writes, a few per turn of the event loop. */
  async #answer(): Promise<void> {
    for (;;) {
      for (const answer of this.#answers.splice(0, ANSWERS_PER_TURN)) answer();
      if (this.#answers.length === 0) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #refuse(done: readonly Waiting[], error: unknown): void {
    if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
    for (const waiting of done) waiting.reject(translated(error, this.#path));
  }
}
