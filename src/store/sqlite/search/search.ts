import type { Worker } from "node:worker_threads";
import { Refusal } from "../../../contract/refusal.ts";
import { closing } from "../../around-write.ts";
import type { Log } from "../../../log.ts";
import type { EntryFound, EntrySearch } from "../../port/store.ts";
import { SEARCH_MS, tooLong, WAITING_TIMES } from "../../search/row.ts";
import type { Ask, Reply } from "./worker.ts";

const AT_ONCE = 2;
/** The maximum number of waiting searches; further ones are refused. */
const WAITING_MAX = 200;
/** A thread that is idle for this long ends, to free its memory. */
const IDLE_MS = 20_000;

interface Waiting {
  readonly search: EntrySearch;
  readonly resolve: (found: EntryFound) => void;
  readonly reject: (error: unknown) => void;
}

interface Thread {
  readonly worker: Worker;
  isReady: boolean;
  doing: Waiting | null;
  timer: NodeJS.Timeout | null;
}

/**
 * Runs each search in a thread with its own read-only connection. Threads start with the first search and end
 * when idle. A search that exceeds its CPU time stops itself. One that exceeds its elapsed time is refused at
 * once and its thread is terminated, because a statement cannot be interrupted; the thread counts as busy
 * until it is gone.
 */
export class Searches {
  readonly #path: string;
  readonly #log: Log;
  readonly #searchMs: number;
  readonly #threads = new Set<Thread>();
  readonly #waiting: Waiting[] = [];
  #paused: Promise<void> | null = null;
  #isClosed = false;

  constructor(path: string, { log, searchMs = SEARCH_MS }: { log: Log; searchMs?: number | undefined }) {
    this.#path = path;
    this.#log = log;
    this.#searchMs = searchMs;
  }

  run(search: EntrySearch): Promise<EntryFound> {
    if (this.#isClosed) return Promise.reject(closing("searched"));
    if (this.#waiting.length >= WAITING_MAX) {
      return Promise.reject(
        new Refusal("store_busy", `${WAITING_MAX} searches are waiting already. Try again in a moment.`),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ search, resolve, reject });
      this.#next();
    });
  }

  /** Starts no further search until the promise settles. */
  pauseUntil(until: Promise<void>): void {
    const paused = until.finally(() => {
      if (this.#paused !== paused) return;
      this.#paused = null;
      this.#next();
    });
    this.#paused = paused;
  }

  /** Refuses waiting searches, lets running ones finish, and ends the threads. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const waiting of this.#waiting.splice(0)) waiting.reject(closing("searched"));
    await Promise.all([...this.#threads].map((thread) => this.#end(thread)));
  }

  #next(): void {
    if (this.#paused !== null) return;
    while (this.#waiting.length > 0) {
      const idle = [...this.#threads].find((thread) => thread.isReady && thread.doing === null);
      if (idle === undefined) {
        const starting = [...this.#threads].filter(({ isReady }) => !isReady).length;
        if (this.#threads.size < AT_ONCE && starting < this.#waiting.length) this.#start();
        return;
      }
      this.#begin(idle, this.#waiting.shift()!);
    }
  }

  #begin(thread: Thread, waiting: Waiting): void {
    if (thread.timer !== null) clearTimeout(thread.timer);
    thread.doing = waiting;
    thread.worker.ref();
    thread.worker.postMessage({ search: waiting.search, ms: this.#searchMs } satisfies Ask);
    thread.timer = setTimeout(() => this.#giveUp(thread), this.#searchMs * WAITING_TIMES);
  }

  #giveUp(thread: Thread): void {
    thread.isReady = false;
    const { doing } = thread;
    thread.doing = null;
    void thread.worker.terminate();
    doing?.reject(tooLong());
  }

  #heard(thread: Thread, reply: Reply): void {
    if (reply === "ready") thread.isReady = true;
    else if (thread.doing !== null) {
      const { doing } = thread;
      thread.doing = null;
      if ("found" in reply) doing.resolve(JSON.parse(reply.found) as EntryFound);
      else if ("refusal" in reply) doing.reject(new Refusal(reply.refusal.code, reply.refusal.message));
      else doing.reject(new Error(`a search failed: ${reply.error}`));
    }
    this.#idle(thread);
    this.#next();
  }

  #idle(thread: Thread): void {
    if (thread.timer !== null) clearTimeout(thread.timer);
    thread.timer = setTimeout(() => void this.#end(thread), IDLE_MS);
    thread.timer.unref();
    thread.worker.unref();
  }

  #start(): void {
    // The published package is compiled to `.js`, but the compiler does not rewrite the extension in a URL.
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const threads = process.getBuiltinModule("node:worker_threads");
    const worker = new threads.Worker(new URL(`./worker.${extension}`, import.meta.url), {
      name: "search",
      workerData: { path: this.#path },
      resourceLimits: { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16 },
    });
    const thread: Thread = { worker, isReady: false, doing: null, timer: null };
    this.#threads.add(thread);
    worker.on("message", (reply: Reply) => this.#heard(thread, reply));
    worker.on("error", (error) => {
      this.#log.warn({ error: String(error) }, "a search thread failed; the next search starts another");
      this.#failed(thread, error);
    });
    worker.on("exit", () => {
      if (thread.timer !== null) clearTimeout(thread.timer);
      this.#threads.delete(thread);
      thread.doing?.reject(closing("searched"));
      if (!this.#isClosed) this.#next();
    });
  }

  /**
   * If a thread fails before it is ready, all waiting searches are rejected. Otherwise a thread that cannot
   * start would be restarted forever.
   */
  #failed(thread: Thread, error: unknown): void {
    const failed = thread.isReady ? [thread.doing] : this.#waiting.splice(0);
    thread.isReady = false;
    thread.doing = null;
    for (const waiting of failed) waiting?.reject(error);
  }

  async #end(thread: Thread): Promise<void> {
    const gone = new Promise((resolve) => thread.worker.once("exit", resolve));
    thread.worker.ref();
    thread.isReady = false;
    thread.worker.postMessage("close" satisfies Ask);
    await gone;
  }
}
