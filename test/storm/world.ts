import { readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { chooseSandbox } from "../../src/drivers/process/sandbox.ts";
import type { Moment } from "../../src/kernel/deps.ts";
import { type CuttingProxy, cuttingProxy } from "../../src/store/testing/cutting-proxy.ts";
import { type TestPostgres, testPostgres } from "../../src/store/testing/test-postgres.ts";
import { type Client, TestHome } from "../support/daemon.ts";
import { simsOf } from "../support/processes.ts";
import { Chance } from "./chance.ts";
import { Counts, Findings } from "./findings.ts";

export type StoreKind = "sqlite" | "postgres";

export interface WorldOptions {
  readonly seed: number;
  readonly store: StoreKind;
}

/** A daemon that is not up after this time counts as hung. */
const START_MS = 90_000;

/** One home with its store, daemons and agents, and the faults that can be injected from outside. */
export class World {
  readonly seed: number;
  readonly kind: StoreKind;
  readonly home: TestHome;
  /** The address for reading the tables, which bypasses the proxy. */
  readonly store: string;
  readonly postgres: TestPostgres | null;
  readonly proxy: CuttingProxy | null;
  readonly counts = new Counts();
  readonly findings = new Findings();
  /** Digits that appear in the command line of every process that a script leaves behind. */
  readonly mark: string;
  /**
   * Whether all agents run in namespaces, from which no process can escape. Otherwise some agents run in the
   * sandbox `guard`.
   */
  readonly hasNamespaces: boolean;
  readonly output: string;
  /** Whether we caused the daemon's death; any other death is a finding. */
  #isKilled = false;
  #isUp = false;
  readonly #chance: Chance;
  readonly #sandboxes: readonly string[];

  private constructor(options: WorldOptions, parts: Parts) {
    this.seed = options.seed;
    this.kind = options.store;
    this.store = parts.store;
    this.postgres = parts.postgres;
    this.proxy = parts.proxy;
    const chance = new Chance(options.seed, "world");
    this.#chance = chance;
    const { namespaces } = parts;
    this.hasNamespaces = namespaces.length > 0 && chance.is(0.5);
    this.#sandboxes = this.hasNamespaces ? namespaces : [...namespaces, "guard", "guard"];
    this.mark = String(chance.int(100_000_000, 999_999_999));
    this.output = path.join(tmpdir(), `kinfold-storm-${process.pid}-${this.mark}.log`);
    const url = parts.proxy === null ? parts.store : withPort(parts.store, parts.proxy.port);
    this.home = new TestHome({ store: url, output: this.output, env: settings(chance) });
  }

  static async open(options: WorldOptions): Promise<World> {
    const namespaces = await workingNamespaces();
    if (options.store === "sqlite") {
      return new World(options, { store: "sqlite", postgres: null, proxy: null, namespaces });
    }
    const postgres = await testPostgres();
    const store = await postgres.url();
    const proxy = await cuttingProxy(Number(new URL(store).port));
    return new World(options, { store, postgres, proxy, namespaces });
  }

  client(): Client {
    return this.home.client();
  }

  get isUp(): boolean {
    return this.#isUp && this.home.exit === null;
  }

  /** Starts the daemon. Resolves to false if it did not come up: it died, or it hung and was killed. */
  async start(crashAt?: { moment: Moment; count: number }): Promise<boolean> {
    this.#isKilled = false;
    this.counts.add("starts of the daemon");
    const late = new AbortController();
    // The pause rejects only when it is aborted below, after the start has ended.
    const hung = pause(START_MS, "hung", { signal: late.signal }).catch(() => "in time");
    const starting = this.home
      .start({ env: this.#startEnv(), ...(crashAt === undefined ? {} : { crashAt }) })
      .then(
        () => "up",
        () => "down",
      );
    const how = await Promise.race([starting, hung]);
    late.abort();
    this.#isUp = how === "up";
    if (how === "hung") {
      this.findings.add("start-hung", `the daemon was not up after ${START_MS / 1000} s`, this.lastWords());
      await this.killDaemon();
    }
    return this.#isUp;
  }

  /** Each daemon may use a different sandbox than the one before. */
  #startEnv(): Record<string, string> {
    return { KINFOLD_SANDBOX: this.#chance.pick(this.#sandboxes) };
  }

  async killDaemon(): Promise<void> {
    this.noticeDeath();
    this.#isKilled = true;
    this.#isUp = false;
    await this.home.kill();
  }

  /** Records that the daemon will kill itself at a named moment, so that its death is expected. */
  expectDeath(): void {
    this.#isKilled = true;
  }

  /** Records a finding if the daemon died and we did not kill it. */
  noticeDeath(): void {
    const { exit } = this.home;
    if (exit === null || this.#isKilled) return;
    this.#isKilled = true;
    this.findings.add("daemon-died", `the daemon ended by itself: ${exit}`, this.lastWords());
  }

  lastWords(): { said: string } {
    return { said: readFileSync(this.output, "utf8").slice(-1500) };
  }

  /** Returns the pids of the agents, without the processes that supervise them. */
  agents(): number[] {
    return simsOf(this.home.agents()).map((each) => each.pid);
  }

  signal(pids: readonly number[], signal: NodeJS.Signals): void {
    for (const pid of pids) {
      try {
        process.kill(pid, signal);
      } catch (error) {
        // The process has ended since it was listed.
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
    }
  }

  /**
   * Returns every process that carries a lease of this home, was left behind by one of its scripts, or guards
   * one of its agents.
   */
  processes(): { pid: number; command: string }[] {
    return [...this.home.agents(), ...processesWith(`.${this.mark}`)];
  }

  /** Ends everything and removes every folder. It may be called at any time. */
  async close(): Promise<void> {
    this.signal(this.postgres?.pids() ?? [], "SIGCONT");
    this.home.signal("SIGCONT");
    await this.home.kill();
    this.signal(
      this.processes().map((each) => each.pid),
      "SIGKILL",
    );
    await this.home.close().catch((error: unknown) => this.findings.add("left-behind", String(error)));
    await this.proxy?.close();
    await this.postgres?.stop();
    rmSync(this.output, { force: true });
  }
}

interface Parts {
  readonly store: string;
  readonly postgres: TestPostgres | null;
  readonly proxy: CuttingProxy | null;
  readonly namespaces: readonly string[];
}

/** Returns the sandboxes that work on this machine and from which no process can escape. */
async function workingNamespaces(): Promise<string[]> {
  const found: string[] = [];
  for (const mode of ["bubblewrap", "namespaces"] as const) {
    if ((await chooseSandbox(mode)).kind !== "none") found.push(mode);
  }
  return found;
}

function settings(chance: Chance): Record<string, string> {
  return {
    KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1000",
    KINFOLD_LIMITS_SPAWNS_MAX: "10000",
    KINFOLD_LIMITS_CHILDREN_MAX: "50",
    KINFOLD_LIMITS_SESSIONS_MAX: "500",
    KINFOLD_LIMITS_TURNS_MAX: String(chance.int(4, 12)),
    KINFOLD_LIMITS_PROCESSES_MAX: String(chance.int(8, 16)),
    KINFOLD_IDLE_MS: String(chance.pick([200, 1000, 3000])),
    KINFOLD_BACKGROUND_MS: "2000",
    KINFOLD_CANCEL_GRACE_MS: String(chance.pick([100, 1000])),
    KINFOLD_LOG_LEVEL: process.env["KINFOLD_TEST_LOG"] ?? "warn",
  };
}

function withPort(store: string, port: number): string {
  const url = new URL(store);
  url.port = String(port);
  return url.href;
}

function processesWith(words: string): { pid: number; command: string }[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    const command = commandOf(name);
    return command.includes(words) ? [{ pid: Number(name), command }] : [];
  });
}

function commandOf(pid: string): string {
  try {
    return readFileSync(path.join("/proc", pid, "cmdline"), "utf8")
      .replaceAll("\0", " ")
      .trim();
  } catch {
    // The process has ended since it was listed.
    return "";
  }
}
