import { statSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import type { Log } from "../../log.ts";
import type { Answer } from "./checkpoint-worker.ts";

const EVERY_MS = 250;
/** Below this the log is left alone, and no thread is started for it. */
const WORTH_BYTES = 4 * 1024 * 1024;
const TRUNCATE_BYTES = 64 * 1024 * 1024;

/**
 * Keeps the write-ahead log short without the event loop noticing. The thread starts when the log
 * first grows past what is worth it, and never keeps the process alive. While writes go on, the log
 * can be copied back but not begun anew; once it is long, writers are held for the moment it takes
 * to copy the rest and empty it.
 */
export class Checkpointer {
  readonly #path: string;
  readonly #log: Log;
  readonly #hold: (until: Promise<void>) => void;
  #timer: NodeJS.Timeout | null = null;
  #worker: Worker | null = null;
  #working = false;
  #dirty = false;
  #closed = false;
  #emptied: (() => void) | null = null;

  constructor(path: string, options: { log: Log; hold: (until: Promise<void>) => void }) {
    this.#path = path;
    this.#log = options.log;
    this.#hold = options.hold;
  }

  /** Something was committed. */
  grown(): void {
    this.#dirty = true;
    if (this.#timer !== null || this.#closed) return;
    this.#timer = setTimeout(() => this.#look(), EVERY_MS);
    this.#timer.unref();
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

  #look(): void {
    this.#timer = null;
    if (this.#working || !this.#dirty) return;
    this.#dirty = false;
    if (this.#bytes() < WORTH_BYTES) return;
    this.#worker ??= this.#start();
    this.#working = true;
    this.#worker.postMessage("passive");
  }

  #bytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  #done(answer: Answer): void {
    if (answer.error !== null) {
      this.#log.warn({ error: answer.error }, "the write-ahead log could not be checkpointed");
    }
    if (answer.mode === "passive" && !this.#closed && this.#bytes() > TRUNCATE_BYTES) {
      const emptied = Promise.withResolvers<void>();
      this.#emptied = emptied.resolve;
      this.#hold(emptied.promise);
      // Writers wait for its answer, so for this moment it does keep the process alive.
      this.#worker?.ref();
      this.#worker?.postMessage("truncate");
      return;
    }
    this.#free();
  }

  #free(): void {
    this.#working = false;
    if (!this.#closed) this.#worker?.unref();
    this.#emptied?.();
    this.#emptied = null;
    if (this.#dirty) this.grown();
  }

  #start(): Worker {
    // The published package is compiled, and only imports have their extension changed for it.
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const threads = process.getBuiltinModule("node:worker_threads");
    const worker = new threads.Worker(new URL(`./checkpoint-worker.${extension}`, import.meta.url), {
      workerData: { path: this.#path },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    });
    worker.on("message", (answer: Answer) => this.#done(answer));
    worker.on("error", (error) => {
      this.#log.warn(
        { error: String(error) },
        "the checkpoint thread failed; it is started again when needed",
      );
    });
    worker.on("exit", () => {
      this.#worker = null;
      this.#free();
    });
    // Only now: a listener for messages would keep the process alive again.
    worker.unref();
    return worker;
  }
}
