import { fileSize } from "../../../system/file-size.ts";
import type { Worker } from "node:worker_threads";
import type { Log } from "../../../log.ts";
import type { Answer } from "./checkpoint-worker.ts";

const EVERY_MS = 250;
/** From this size on, the log is checkpointed while writes continue. */
const WORTH_BYTES = 4 * 1024 * 1024;
const TRUNCATE_BYTES = 64 * 1024 * 1024;
/** A log of any size is emptied after this long without a commit. */
const IDLE_MS = 1_000;
/** The log is emptied this long after it began to grow, because it may hold text that was redacted since. */
const GROWING_MS = 30_000;

/**
 * Keeps the write-ahead log short without blocking the event loop. The worker thread starts when there is
 * work, and keeps the process alive only while something waits for its answer. While writes continue, the log
 * can be copied into the database but not emptied. So writers are paused briefly to empty it: when the log is
 * long, when there was no commit for a while, and when it has grown for too long. An empty log holds neither
 * the only copy of a commit nor text that has been redacted since.
 */
export class WalCheckpointer {
  readonly #path: string;
  readonly #log: Log;
  readonly #pauseUntil: (until: Promise<void>) => void;
  #timer: NodeJS.Timeout | null = null;
  #worker: Worker | null = null;
  #working = false;
  #dirty = false;
  #closed = false;
  #emptied: (() => void) | null = null;
  /** When the log last grew, and when it began to grow after it was last emptied. */
  #grownAt = 0;
  #growsSince: number | null = null;
  #isEmptying = false;
  #emptyNotBefore = 0;

  constructor(path: string, options: { log: Log; pauseUntil: (until: Promise<void>) => void }) {
    this.#path = path;
    this.#log = options.log;
    this.#pauseUntil = options.pauseUntil;
  }

  /** Call it after a commit. */
  grown(): void {
    this.#dirty = true;
    this.#grownAt = performance.now();
    this.#growsSince ??= this.#grownAt;
    this.#lookLater(EVERY_MS);
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const worker = this.#worker;
    if (worker === null) return;
    const gone = new Promise((resolve) => worker.once("exit", resolve));
    worker.ref();
    worker.postMessage("close");
    await gone;
  }

  #lookLater(ms: number): void {
    if (this.#timer !== null || this.#closed) return;
    this.#timer = setTimeout(() => this.#look(), ms);
    this.#timer.unref();
  }

  #look(): void {
    this.#timer = null;
    if (this.#working || this.#growsSince === null) return;
    const now = performance.now();
    const isDue = now - this.#grownAt >= IDLE_MS || now - this.#growsSince >= GROWING_MS;
    this.#isEmptying = isDue && now >= this.#emptyNotBefore;
    const isWorth = this.#dirty && this.#bytes() >= WORTH_BYTES;
    if (!this.#isEmptying && !isWorth) {
      this.#lookLater(EVERY_MS);
      return;
    }
    this.#dirty = false;
    this.#worker ??= this.#start();
    this.#working = true;
    this.#worker.postMessage("passive");
  }

  #bytes(): number {
    return fileSize(`${this.#path}-wal`);
  }

  #done(answer: Answer): void {
    if (answer.error !== null) {
      this.#log.warn({ error: answer.error }, "the write-ahead log could not be checkpointed");
    }
    const isLong = this.#isEmptying || this.#bytes() > TRUNCATE_BYTES;
    if (answer.mode === "passive" && !this.#closed && isLong) {
      const emptied = Promise.withResolvers<void>();
      this.#emptied = emptied.resolve;
      this.#pauseUntil(emptied.promise);
      // Writers wait for the worker's answer, so the worker keeps the process alive until then.
      this.#worker?.ref();
      this.#worker?.postMessage("truncate");
      return;
    }
    if (answer.mode === "truncate") this.#hasEmptied();
    this.#free();
  }

  /** If another program's old snapshot kept the log from being emptied, the next try comes later. */
  #hasEmptied(): void {
    if (this.#bytes() === 0) this.#growsSince = null;
    else this.#emptyNotBefore = performance.now() + GROWING_MS;
  }

  #free(): void {
    this.#working = false;
    if (!this.#closed) this.#worker?.unref();
    this.#emptied?.();
    this.#emptied = null;
    if (this.#growsSince !== null) this.#lookLater(EVERY_MS);
  }

  #start(): Worker {
    // The published package is compiled to `.js`, but the compiler does not rewrite the extension in a URL.
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const threads = process.getBuiltinModule("node:worker_threads");
    const worker = new threads.Worker(new URL(`./checkpoint-worker.${extension}`, import.meta.url), {
      name: "checkpoint",
      workerData: { path: this.#path },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    });
    worker.on("message", (answer: Answer) => this.#done(answer));
    worker.on("error", (error) => {
      this.#log.warn(
        { error: String(error) },
        "the WAL checkpoint thread failed; it is started again when needed",
      );
    });
    worker.on("exit", () => {
      this.#worker = null;
      this.#free();
    });
    // Must come last: adding a message listener would keep the process alive again.
    worker.unref();
    return worker;
  }
}
