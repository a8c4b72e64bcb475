import type { ResourceLimits, Worker } from "node:worker_threads";
import type { HistoryScan } from "../contract/index.ts";
import type { UserHome } from "../history/port.ts";
import type { EngineDeps, Service } from "./deps.ts";
import type { ThreadRpc } from "../system/thread-rpc.ts";
import type { ImportTask } from "../import/thread/current-tasks.ts";
import type { ImportOptions, ReaderSide } from "../import/thread/protocol.ts";
import { Restarts } from "../import/thread/restarts.ts";

/** Delay after the daemon's start, so that the import does not slow the start down. */
const BEGIN_MS = 500;
const SCAN_MS = 15_000;
const PROBE_MS = 3_000;
const STOP_MS = 2_000;
/**
 * Memory limit of the import thread: enough for the longest line that is read, both as text and parsed.
 * Without a limit, V8 would collect garbage too late.
 */
const MEMORY = { maxYoungGenerationSizeMb: 48, maxOldGenerationSizeMb: 224 } as const;

/**
 * Imports the sessions that agents left on disk and keeps them up to date, once a caller has asked for it. A
 * separate thread does all the reading; it starts on demand and sends every write to this thread.
 */
export class Importer implements Service {
  readonly name = "importer";
  readonly #deps: EngineDeps;
  readonly #userHome: UserHome;
  readonly #memory: ResourceLimits;
  readonly #restarts = new Restarts();
  #thread: { worker: Worker; rpc: ThreadRpc<ReaderSide> } | null = null;
  #starting: Promise<void> | null = null;
  #off: () => void = () => undefined;
  #timer: NodeJS.Timeout | null = null;
  #count = 0;
  #isStopped = false;

  constructor(deps: EngineDeps, userHome: UserHome, { memory = MEMORY }: { memory?: ResourceLimits } = {}) {
    this.#deps = deps;
    this.#userHome = userHome;
    this.#memory = memory;
  }

  async run(): Promise<void> {
    this.#off = this.#deps.store.imports.onAsk(() => void this.#asked());
    this.#timer = setTimeout(() => void this.#begin(), BEGIN_MS);
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#off();
    if (this.#timer !== null) clearTimeout(this.#timer);
    // A failed start was already logged, and it left nothing to stop.
    await this.#starting?.catch(() => undefined);
    const thread = this.#thread;
    this.#thread = null;
    if (thread === null) return;
    const late = new Promise((resolve) => setTimeout(resolve, STOP_MS).unref());
    // A thread that has already ended cannot answer; it is terminated below in any case.
    await Promise.race([thread.rpc.ask("stop", null).catch(() => undefined), late]);
    thread.rpc.close("the daemon is shutting down");
    await thread.worker.terminate();
  }

  async #begin(): Promise<void> {
    try {
      const asked = await this.#deps.store.imports.asked();
      if (!this.#deps.config.history.enabled && asked === null) return;
      await this.#start(asked?.exclude ?? []);
      this.#count = Math.max(this.#count, asked?.count ?? 0);
    } catch (error) {
      this.#failed(error, { tasks: [], livedMs: 0 });
    }
  }

  /** Handles an import request: the first one starts the thread, each later one scans everything again. */
  async #asked(): Promise<void> {
    try {
      const asked = await this.#deps.store.imports.asked();
      if (asked === null || this.#isStopped) return;
      const isRunning = this.#thread !== null || this.#starting !== null;
      const isNew = asked.count !== this.#count;
      if (isNew) this.#restarts.retryAll();
      await this.#start(asked.exclude);
      this.#count = asked.count;
      if (isRunning && isNew) await this.#thread?.rpc.ask("scan", this.#excluded(asked.exclude));
    } catch (error) {
      this.#deps.log.error({ err: error }, "import request failed");
    }
  }

  #start(exclude: readonly string[]): Promise<void> {
    return (this.#starting ??= this.#open(exclude).catch((error: unknown) => {
      this.#starting = null;
      throw error;
    }));
  }

  async #open(exclude: readonly string[]): Promise<void> {
    const [threads, { ThreadRpc: OpenThreadRpc }, { storeSide }, { newTaskMemory, tasksIn }] =
      await Promise.all([
        import("node:worker_threads"),
        import("../system/thread-rpc.ts"),
        import("../import/commit.ts"),
        import("../import/thread/current-tasks.ts"),
      ]);
    if (this.#isStopped) return;
    const { store, config, log, now } = this.#deps;
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const options: ImportOptions = {
      userHome: this.#userHome,
      roots: config.history.roots,
      exclude: this.#excluded(exclude),
      node: store.node,
      scope: config.history.scope,
      scanMs: SCAN_MS,
      probeMs: PROBE_MS,
      taskMemory: newTaskMemory(),
      isCareful: this.#restarts.isCareful,
      setAside: this.#restarts.setAside,
    };
    const worker = new threads.Worker(new URL(`../import/thread/worker.${extension}`, import.meta.url), {
      workerData: options,
      execArgv: [],
      resourceLimits: this.#memory,
    });
    const rpc = new OpenThreadRpc<ReaderSide>((packet) => worker.postMessage(packet), storeSide(store, now));
    worker.on("message", rpc.receive);
    const startedAt = performance.now();
    let failure: unknown = null;
    worker.once("error", (error) => (failure = error));
    worker.once("exit", (code) => {
      rpc.close("the import thread has ended");
      const livedMs = performance.now() - startedAt;
      const error = failure ?? new Error(`the import thread ended with exit code ${code}`);
      this.#failed(error, { tasks: tasksIn(options.taskMemory), livedMs });
    });
    worker.unref();
    this.#thread = { worker, rpc };
    log.info({ node: store.node }, "import thread started");
  }

  /** Restarts the import thread after a pause; the new thread skips the file that the old one died on. */
  #failed(error: unknown, { tasks, livedMs }: { tasks: readonly ImportTask[]; livedMs: number }): void {
    if (this.#isStopped) return;
    const files = tasks.map((task) => task.path);
    this.#deps.log.error({ err: error, files }, "import thread failed; restarting it");
    this.#starting = null;
    this.#thread = null;
    const reason = error instanceof Error ? error.message : String(error);
    const pauseMs = this.#restarts.died({ tasks, error: reason, livedMs });
    void this.#publishFailure(reason);
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#begin(), pauseMs);
    this.#timer.unref();
  }

  /** Publishes that the import failed. If the store has failed too, only the log shows the failure. */
  async #publishFailure(reason: string): Promise<void> {
    const { imports } = this.#deps.store;
    try {
      const progress = await imports.scan();
      if (progress === null) return;
      const scan: HistoryScan = { ...progress.scan, phase: "failed", error: reason };
      await imports.publish({ scan, problems: progress.problems });
    } catch (error) {
      this.#deps.log.warn({ err: error }, "could not publish the failure of an import");
    }
  }

  #excluded(asked: readonly string[]): string[] {
    return [...this.#deps.config.history.exclude, ...asked];
  }
}
