import type { Worker } from "node:worker_threads";
import type { Config, Usage } from "../../contract/index.ts";
import type { UserHome } from "../../history/port.ts";
import type { Log } from "../../log.ts";
import type { Service, UsageFiles } from "../deps.ts";
import type { ThreadRpc } from "../../system/thread-rpc.ts";

export interface UsageOptions {
  readonly userHome: UserHome;
  /** Additional folders per format, from the configuration. */
  readonly roots: Readonly<Record<string, readonly string[]>>;
}

export type UsageSide = {
  readonly total: (asked: { agent: string; id: string }) => Promise<Usage | null>;
  readonly forget: (id: string) => void;
};

/** Agents whose session files record the usage of each model call. */
const COVERED: ReadonlySet<string> = new Set(["claude", "codex", "gemini", "opencode"]);
/** Timeout of a read; after it the turn is metered by its agent's updates alone. */
const ANSWER_MS = 5_000;
const MEMORY = { maxYoungGenerationSizeMb: 32, maxOldGenerationSizeMb: 192 } as const;

/**
 * Reads agents' session files in a separate thread, because a large file would block the event loop. The
 * thread starts with the first turn that needs it.
 */
export class UsageThread implements Service, UsageFiles {
  readonly name = "usage";
  readonly #options: UsageOptions;
  readonly #log: Log;
  #thread: Promise<{ worker: Worker; rpc: ThreadRpc<UsageSide> }> | null = null;
  #isStopped = false;

  constructor(options: { userHome: UserHome; config: Pick<Config, "history">; log: Log }) {
    this.#options = { userHome: options.userHome, roots: options.config.history.roots };
    this.#log = options.log;
  }

  async run(): Promise<void> {}

  async stop(): Promise<void> {
    this.#isStopped = true;
    // If the thread failed to start, that was already logged, and there is nothing to end.
    const thread = await this.#thread?.catch(() => null);
    thread?.rpc.close("the daemon is shutting down");
    await thread?.worker.terminate();
  }

  covers(agent: string): boolean {
    return COVERED.has(agent);
  }

  async total(agent: string, agentSessionId: string): Promise<Usage | null> {
    if (this.#isStopped) return null;
    let timer: NodeJS.Timeout | null = null;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), ANSWER_MS);
    });
    try {
      const { rpc } = await (this.#thread ??= this.#start());
      return await Promise.race([rpc.ask("total", { agent, id: agentSessionId }), late]);
    } catch (error) {
      this.#log.warn({ err: error, agent }, "reading usage from an agent's session file failed");
      return null;
    } finally {
      if (timer !== null) clearTimeout(timer);
    }
  }

  forget(agentSessionId: string): void {
    // An error means that the thread has ended, so it has nothing to forget.
    this.#thread?.then(({ rpc }) => rpc.ask("forget", agentSessionId)).catch(() => undefined);
  }

  async #start(): Promise<{ worker: Worker; rpc: ThreadRpc<UsageSide> }> {
    const [threads, { ThreadRpc: OpenThreadRpc }] = await Promise.all([
      import("node:worker_threads"),
      import("../../system/thread-rpc.ts"),
    ]);
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const worker = new threads.Worker(new URL(`./worker.${extension}`, import.meta.url), {
      workerData: this.#options,
      execArgv: [],
      resourceLimits: MEMORY,
    });
    const rpc = new OpenThreadRpc<UsageSide>((packet) => worker.postMessage(packet), {});
    worker.on("message", rpc.receive);
    worker.once("error", (error) => this.#log.error({ err: error }, "usage thread failed"));
    worker.once("exit", () => {
      rpc.close("the usage thread has ended");
      this.#thread = null;
    });
    worker.unref();
    return { worker, rpc };
  }
}
