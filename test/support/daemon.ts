import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { connect } from "../../src/client/index.ts";
import { readDaemonFile } from "../../src/config/daemon-file.ts";
import type { Moment } from "../../src/kernel/deps.ts";
import { COMPILED } from "./compiled.ts";
import { Patience } from "./patience.ts";

const ENTRY = fileURLToPath(new URL("./daemon-entry.ts", import.meta.url));

export type Client = ReturnType<typeof connect>;

export interface DaemonSetup {
  /** `sqlite`, or a postgres:// address. */
  readonly store?: string;
  /** Settings as environment variables: `{ KINFOLD_LIMITS_CHILDREN_MAX: "100" }`. */
  readonly env?: Record<string, string>;
  /** The content of kinfold.yaml. */
  readonly yaml?: string;
  /** A file for everything the daemons print; by default they print to the output of this process. */
  readonly output?: string;
}

/** A temporary home in which real daemon processes are started and killed. */
export class TestHome {
  readonly home: string;
  readonly work: string;
  readonly #setup: DaemonSetup;
  readonly #processes: ChildProcess[] = [];
  #current: ChildProcess | null = null;

  constructor(setup: DaemonSetup = {}) {
    this.#setup = setup;
    this.home = mkdtempSync(path.join(tmpdir(), "kinfold-test-"));
    this.work = mkdtempSync(path.join(tmpdir(), "kinfold-work-"));
    if (setup.yaml !== undefined) writeFileSync(path.join(this.home, "kinfold.yaml"), setup.yaml);
    // Shares the compile cache: otherwise every home compiles sim again, which takes longer than most tests.
    mkdirSync(path.join(this.home, "sim"), { mode: 0o700 });
    mkdirSync(COMPILED, { recursive: true });
    symlinkSync(COMPILED, path.join(this.home, "sim", "compile-cache"));
  }

  get pid(): number {
    return this.#current?.pid ?? 0;
  }

  /** The exit code or signal of the current daemon; null while it runs. */
  get exit(): string | null {
    const { exitCode = null, signalCode = null } = this.#current ?? {};
    return exitCode === null ? signalCode : `code ${exitCode}`;
  }

  get token(): string {
    return readFileSync(path.join(this.home, "token"), "utf8").trim();
  }

  get url(): string {
    return readDaemonFile(path.join(this.home, "daemon.json"))?.url ?? "";
  }

  /** `crashAt`: the daemon kills itself with SIGKILL when it reaches that moment for the `count`-th time. */
  async start(
    options: { crashAt?: { moment: Moment; count?: number }; env?: Record<string, string> } = {},
  ): Promise<Client> {
    const { crashAt } = options;
    const output = this.#setup.output === undefined ? null : openSync(this.#setup.output, "a");
    const child = spawn(process.execPath, [ENTRY], {
      stdio: ["ignore", output ?? "inherit", output ?? "inherit"],
      env: {
        PATH: process.env["PATH"] ?? "",
        // Lets the test runner (scripts/test-run.mjs) find processes that an aborted run left behind.
        KIN_TEST_RUN: process.env["KIN_TEST_RUN"] ?? "",
        HOME: this.work,
        KINFOLD_HOME: this.home,
        KINFOLD_PORT: "0",
        KINFOLD_STORE: this.#setup.store ?? "sqlite",
        KINFOLD_LOG_LEVEL: process.env["KINFOLD_TEST_LOG"] ?? "error",
        NODE_COMPILE_CACHE: COMPILED,
        ...this.#setup.env,
        ...options.env,
        ...(crashAt === undefined ? {} : { KINFOLD_TEST_CRASH: `${crashAt.moment}:${crashAt.count ?? 1}` }),
      },
    });
    if (output !== null) closeSync(output);
    this.#processes.push(child);
    this.#current = child;
    const file = path.join(this.home, "daemon.json");
    for (;;) {
      const daemon = existsSync(file) ? readDaemonFile(file) : null;
      if (daemon !== null && daemon.pid === child.pid && daemon.waiting === undefined) return this.client();
      if (child.exitCode !== null || child.signalCode !== null) {
        throw new Error(`the daemon ended while it started: ${child.exitCode ?? child.signalCode}`);
      }
      await pause(10);
    }
  }

  client(): Client {
    return connect({ url: this.url, token: this.token });
  }

  /** Resolves when the running daemon has ended, for any reason. */
  async ended(): Promise<void> {
    const child = this.#current;
    if (child !== null && child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }

  async kill(): Promise<void> {
    this.#current?.kill("SIGKILL");
    await this.ended();
  }

  async stop(): Promise<void> {
    this.#current?.kill("SIGTERM");
    await this.ended();
  }

  signal(signal: NodeJS.Signals): void {
    this.#current?.kill(signal);
  }

  /** Ends everything and fails if a process with our marker is left. */
  async close(): Promise<void> {
    const leases = this.agents();
    await this.stop();
    for (const child of this.#processes) child.kill("SIGKILL");
    const left = (await gone(() => this.agents().length === 0 || leases.length === 0, 5_000))
      ? []
      : this.agents();
    rmSync(this.home, { recursive: true, force: true });
    rmSync(this.work, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`processes left behind: ${JSON.stringify(left)}`);
  }

  /** Returns the live processes of agents that daemons of this home have started. */
  agents(): { pid: number; lease: string; command: string }[] {
    return markers([this.home, this.work]);
  }
}

/**
 * Returns every process whose environment contains a lease and one of these folders. An agent's environment
 * contains our work folder, because that is its HOME.
 */
function markers(folders: readonly string[]): { pid: number; lease: string; command: string }[] {
  const found: { pid: number; lease: string; command: string }[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const environ = readFileSync(`/proc/${name}/environ`, "utf8");
      const lease = /(?:^|\0)KINFOLD_LEASE=([^\0]*)/.exec(environ)?.[1];
      if (lease === undefined || !folders.some((folder) => environ.includes(folder))) continue;
      const state = /\) (\S)/.exec(readFileSync(`/proc/${name}/stat`, "utf8"))?.[1];
      if (state === "Z") continue;
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
      found.push({ pid: Number(name), lease, command });
    } catch {
      // The process has ended, or we may not read it because it is not one of our agents.
      continue;
    }
  }
  return found;
}

/** Polls until the condition is true; returns false at the time limit. */
export async function gone(ask: () => boolean, timeoutMs: number): Promise<boolean> {
  const patience = new Patience(timeoutMs);
  while (!ask()) {
    if (patience.isOver()) return false;
    await pause(20);
  }
  return true;
}

/**
 * Polls until there is an answer and fails at the time limit, which grows with the slowness of the machine.
 */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | null | false | undefined>,
  timeoutMs = 60_000,
): Promise<T> {
  const patience = new Patience(timeoutMs);
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (patience.isOver()) throw new Error(`never came true: ${what}`);
    await pause(25);
  }
}
