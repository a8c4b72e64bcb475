import { statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { Log } from "../../log.ts";

const EVERY_MS = 250;
/** Below this the log is left alone, and no thread is started for it. */
const WORTH_BYTES = 4 * 1024 * 1024;
const TRUNCATE_BYTES = 64 * 1024 * 1024;

/**
 * Keeps the write-ahead log short without the event loop noticing. The thread starts when the log
 * first grows past what is worth it, and never keeps the process alive.
 */
export class Checkpointer {
  readonly #path: string;
  readonly #log: Log;
  #timer: NodeJS.Timeout | null = null;
  #worker: Worker | null = null;
  #working = false;
  #dirty = false;
  #closed = false;

  constructor(path: string, log: Log) {
    this.#path = path;
    this.#log = log;
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
    const bytes = statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
    if (bytes < WORTH_BYTES) return;
    this.#worker ??= this.#start();
    this.#working = true;
    this.#worker.postMessage(bytes > TRUNCATE_BYTES ? "truncate" : "passive");
  }

  #start(): Worker {
    // The published package is compiled, and only imports have their extension changed for it.
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const worker = new Worker(new URL(`./checkpoint-worker.${extension}`, import.meta.url), {
      workerData: { path: this.#path },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 4 },
    });
    worker.unref();
    worker.on("message", ({ error }: { error: string | null }) => {
      this.#working = false;
      if (error !== null) this.#log.warn({ error }, "the write-ahead log could not be checkpointed");
      if (this.#dirty) this.grown();
    });
    worker.on("error", (error) => {
      this.#log.warn(
        { error: String(error) },
        "the checkpoint thread failed; it is started again when needed",
      );
      this.#working = false;
      this.#worker = null;
    });
    return worker;
  }
}
