import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { daemonEnv } from "../src/cli/daemon/start-daemon.ts";
import { readDaemonFile } from "../src/config/daemon-file.ts";
import type { Paths } from "../src/config/index.ts";

export const DAEMON = fileURLToPath(new URL("../src/daemon.ts", import.meta.url));
export const FAKE_DAEMON = fileURLToPath(new URL("./fake-daemon.ts", import.meta.url));

const ASK_MS = 2;
const GIVE_UP_MS = 60_000;

/** A daemon in a separate process, started as `kinfold up` starts it. */
export class DaemonProcess {
  readonly #paths: Paths;
  readonly #child: ChildProcess;
  readonly #port: number;
  /** Resolves when `tellTurns` turns have begun; `tellTurns` is an option of `start`. */
  readonly begun: Promise<unknown>;
  readonly #tokens = new Map<string, PromiseWithResolvers<string>>();

  private constructor(paths: Paths, child: ChildProcess, port: number) {
    this.#paths = paths;
    this.#child = child;
    this.#port = port;
    const begun = Promise.withResolvers<void>();
    this.begun = begun.promise;
    child.on("message", (message: "begun" | { sessionId: string; token: string }) => {
      if (message === "begun") begun.resolve();
      else this.#tokenOf(message.sessionId).resolve(message.token);
    });
  }

  /**
   * `tellTurns` and `turnsMax` work only with the fake daemon: `begun` resolves after `tellTurns` turns have
   * begun, and at most `turnsMax` turns run at once.
   */
  static async start(
    paths: Paths,
    {
      entry = DAEMON,
      tellTurns = 0,
      turnsMax,
      env: more = {},
    }: { entry?: string; tellTurns?: number; turnsMax?: number; env?: Record<string, string> } = {},
  ): Promise<DaemonProcess> {
    const port = await freePort();
    const { NODE_COMPILE_CACHE = path.join(paths.home, "compiled"), PATH = "", HOME = "" } = process.env;
    const env = { PATH, HOME, NODE_COMPILE_CACHE, KINFOLD_LOG_LEVEL: "error", ...more };
    const child = spawn(process.execPath, [entry], {
      cwd: tmpdir(),
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: {
        ...daemonEnv(paths, { port }, env),
        BENCH_TELL_TURNS: String(tellTurns),
        ...(turnsMax === undefined ? {} : { BENCH_TURNS_MAX: String(turnsMax) }),
      },
    });
    return new DaemonProcess(paths, child, port);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get token(): string {
    return existsSync(this.#paths.token) ? readFileSync(this.#paths.token, "utf8").trim() : "";
  }

  /** Resolves when /api/health has answered. */
  async healthy(): Promise<void> {
    await this.#until(() => answers(`${this.url}/api/health`, this.token));
  }

  /** Resolves when every service is running and recovery has taken over the previous daemon's turns. */
  async atWork(): Promise<void> {
    await this.#until(async () => readDaemonFile(this.#paths.daemonFile)?.pid === this.pid);
  }

  /** Resolves to the token that a session's agent calls our tools with, once the agent has been started. */
  sessionToken(sessionId: string): Promise<string> {
    return this.#tokenOf(sessionId).promise;
  }

  #tokenOf(sessionId: string): PromiseWithResolvers<string> {
    const token = this.#tokens.get(sessionId) ?? Promise.withResolvers<string>();
    this.#tokens.set(sessionId, token);
    return token;
  }

  rssKb(): number {
    return rssKb(this.pid);
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, "exit");
    this.#child.kill(signal);
    await gone;
  }

  async #until(ask: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + GIVE_UP_MS;
    while (!(await ask())) {
      if (this.#child.exitCode !== null) throw new Error(`the daemon ended with ${this.#child.exitCode}`);
      if (performance.now() > deadline) throw new Error("the daemon did not come up");
      await pause(ASK_MS);
    }
  }
}

/** Runs `node -e 0`, the minimum that any Node program costs. */
export async function startBareNode(): Promise<void> {
  const { PATH = "", HOME = "" } = process.env;
  const child = spawn(process.execPath, ["-e", "0"], { stdio: "ignore", env: { PATH, HOME } });
  await once(child, "exit");
}

/** Returns the resident memory of a process, as the system counts it. */
export function rssKb(pid: number): number {
  if (!existsSync("/proc/self/status"))
    return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" }));
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
}

function answers(url: string, token: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, headers: { authorization: `Bearer ${token}` } }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    // Nothing listens on the port yet, so the caller tries again.
    request.on("error", () => resolve(false));
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("there is no free port");
  return address.port;
}
