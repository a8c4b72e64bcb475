import { NEW_TOKEN } from "./store/port/new-session.ts";
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import {
  type Checked,
  handOver,
  replaceProcess,
  showsStorePassword,
  takeChecked,
  withoutStorePassword,
} from "./config/handover.ts";
import { removeDaemonFile, writeDaemonFile } from "./config/daemon-file.ts";
import { kinfoldHome, type Paths, pathsIn, prepareHome } from "./config/paths.ts";
import { problemLine } from "./config/problem.ts";
import { processStart } from "./system/process-start.ts";
import type { Config } from "./contract/index.ts";
import { Refusal } from "./contract/refusal.ts";
import { shortId } from "./contract/short-id.ts";
import type { Driver } from "./drivers/port.ts";
import { createDrivers } from "./drivers/registry.ts";
import type { EngineDeps, Service } from "./engine/deps.ts";
import { Importer } from "./engine/importer.ts";
import { Heartbeat } from "./engine/heartbeat.ts";
import { Retention } from "./engine/retention.ts";
import { Rollout } from "./engine/rollout.ts";
import { Runner } from "./engine/runner.ts";
import { ScopeMover } from "./engine/scope-mover.ts";
import { AgentProbe } from "./engine/agent-probe.ts";
import { UsageThread } from "./engine/usage/thread.ts";
import type { UserHome } from "./history/port.ts";
import type { Deps, Moment } from "./kernel/deps.ts";
import { hashOf, newSecret } from "./system/id.ts";
import { type Log, openLog } from "./log.ts";
import { createGate, createOperations, type OperationDeps } from "./operations/index.ts";
import { createServer } from "./server/http.ts";
import { agentPeerCheck } from "./system/agent-peer.ts";
import { openStore } from "./store/open.ts";
import type { Store } from "./store/port/store.ts";
import type { StoreTrouble } from "./store/problem.ts";
import type { Reaper } from "./system/process.ts";

interface DaemonOptions {
  readonly paths: Paths;
  readonly config: Config;
  readonly log: Log;
  /** Additional drivers, for tests and benchmarks. */
  readonly drivers?: ReadonlyMap<string, Driver>;
  readonly reached?: (moment: Moment) => void;
  /** The home folder in which agents keep their files; default: the person's. */
  readonly place?: UserHome;
}

export interface Daemon {
  readonly url: string;
  readonly token: string;
  readonly store: Store;
  stop(): Promise<void>;
}

/** Constructs every part and starts the services. Contains no rule of the domain. */
export async function startDaemon(options: DaemonOptions): Promise<Daemon> {
  const { paths, config, log } = options;
  const boot = randomUUID();
  prepareHome(paths);
  for (;;) {
    const waiting = whileWaiting({ ...options, boot });
    const store = await openStore({ config, paths, boot, log, waitMs: 45_000, waiting: waiting.say }).finally(
      waiting.end,
    );
    const stops: (() => Promise<void>)[] = [() => store.close()];
    const stop = (): Promise<void> => stopAll(stops);
    try {
      return await compose({ ...options, boot, store, stops, stop });
    } catch (error) {
      const isPassing = store.kind === "postgres" && error instanceof Refusal && error.code === "store_busy";
      if (!isPassing) {
        await stop();
        throw error;
      }
      log.warn({ error: error.message }, "lost the store during startup; starting over");
      await stop().catch((failure: unknown) =>
        log.warn({ error: String(failure) }, "cleanup before starting over failed"),
      );
    }
  }
}

/** Stops every part even if one fails, so that the store's lock is always released. */
async function stopAll(stops: (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const each of stops.splice(0).toReversed()) {
    await each().catch((error: unknown) => failures.push(error));
  }
  if (failures.length > 0) throw failures[0];
}

/** While the database server does not answer, reports the reason over HTTP and in the daemon file. */
function whileWaiting({ paths, config, log, boot }: DaemonOptions & { readonly boot: string }): {
  say(trouble: StoreTrouble): Promise<void>;
  end(): Promise<void>;
} {
  let server: { url: string; close(): Promise<void> } | null = null;
  let reason = "";
  const isPerson = (token: string): boolean =>
    existsSync(paths.token) && hashOf(readFileSync(paths.token, "utf8").trim()) === hashOf(token);
  return {
    async say({ text, since }) {
      if (reason === text) return;
      reason = text;
      const { openStartupServer } = await import("./server/startup-server.ts");
      server ??= await openStartupServer({ config, log, isPerson, reason: () => `${reason}.` });
      const [{ pid }, { url }] = [process, server];
      const own = { pid, url, boot, processStart: processStart(pid) };
      writeDaemonFile(paths.daemonFile, { ...own, startedAt: since, waiting: reason });
    },
    async end() {
      if (server === null) return;
      removeDaemonFile(paths.daemonFile, boot);
      await server.close();
    },
  };
}

interface Parts extends DaemonOptions {
  readonly boot: string;
  readonly store: Store;
  /** Stop functions, in the order in which the parts were started; `stopAll` runs them in reverse. */
  readonly stops: (() => Promise<void>)[];
  readonly stop: () => Promise<void>;
}

async function compose(parts: Parts): Promise<Daemon> {
  const { paths, config, log, store, boot, stops, stop } = parts;
  const token = await personToken(paths, store);
  const drivers = new Map([
    ...createDrivers({ config, simDir: paths.sim, home: paths.home, sandbox: config.sandbox, log }),
    ...(parts.drivers ?? []),
  ]);
  const agents = await Promise.all([...drivers.values()].map((driver) => driver.probe()));
  await store.nodes.register(agents);
  let url = "";
  const startedAt = Date.now();
  const deps: Deps = { store, config, log, now: Date.now, reached: parts.reached ?? (() => undefined) };
  const rolloutPath = (session: { id: string; createdAt: number }): string =>
    rolloutFile(paths.rollouts, session);
  const userHome = parts.place ?? { home: homedir(), env: { ...process.env } };
  const operationDeps: OperationDeps = {
    ...deps,
    address: () => url,
    privateFolders: [paths.home],
    rolloutPath,
    ...projectReads(paths),
    readers: async () => (await import("./history/index.ts")).historyReaders,
    userHome,
    version: VERSION,
    startedAt,
  };
  const server = createServer({
    operations: createOperations(operationDeps),
    gate: createGate(operationDeps),
    log,
    config,
    version: VERSION,
    isAgentPeer: agentPeerCheck({ remembered }),
  });
  ({ url } = await server.listen());
  stops.push(() => server.close());
  const usageFiles = new UsageThread({ userHome, config, log });
  const engineDeps: EngineDeps = {
    ...deps,
    drivers,
    usageFiles,
    reaper,
    toolsUrl: () => `${url}/mcp`,
    rolloutPath,
    rolloutFolder: paths.rollouts,
    messageFolder: paths.messages,
    privateFolders: [paths.home],
  };
  const runner = new Runner(engineDeps, agents);
  const services: Service[] = [
    usageFiles,
    new Rollout(engineDeps),
    runner,
    new Heartbeat(engineDeps, runner),
    new AgentProbe(engineDeps, runner),
    new Importer(engineDeps, userHome),
    new Retention(engineDeps),
    new ScopeMover(engineDeps),
  ];
  for (const service of services) {
    await service.run();
    stops.push(() => service.stop());
  }
  const { pid } = process;
  writeDaemonFile(paths.daemonFile, { pid, url, startedAt, boot, processStart: processStart(pid) });
  stops.push(async () => removeDaemonFile(paths.daemonFile, boot));
  log.info({ url, pid, store: store.kind, node: store.node }, "kinfold is up");
  return { url, token, store, stop };
}

function projectReads({ home }: Paths): Pick<OperationDeps, "profiles" | "projectCeiling"> {
  return {
    profiles: async (cwd) => (await import("./config/profile.ts")).loadProfiles({ home, project: cwd }),
    projectCeiling: async (cwd) => (await import("./config/project-ceiling.ts")).readProjectCeiling(cwd),
  };
}

/** Loads `process-tree.ts` and `descendant-watch.ts` on first use, so that the daemon starts faster. */
const reaper: Reaper = {
  reap: async (...order) => (await import("./system/process-tree.ts")).reaper.reap(...order),
};
const remembered = async (): Promise<ReadonlySet<number>> =>
  (await import("./drivers/process/descendant-watch.ts")).rememberedPids();

/** Returns the person's token, which the first start creates. The store has only its hash. */
async function personToken(paths: Paths, store: Store): Promise<string> {
  if (!existsSync(paths.token)) {
    writeFileSync(paths.token, `${newSecret("kfp")}\n`, { mode: 0o600, flag: "wx" });
  }
  const token = readFileSync(paths.token, "utf8").trim();
  const hash = hashOf(token);
  if ((await store.read.tokens.byHash(hash)) === null) {
    const noSession = { sessionId: null, rootId: null, fence: null };
    const createdAt = Date.now();
    await store.addToken({ hash, kind: "person", name: "you", createdAt, ...noSession, ...NEW_TOKEN });
  }
  return token;
}

function rolloutFile(folder: string, session: { id: string; createdAt: number }): string {
  const time = new Date(session.createdAt).toISOString().replaceAll(":", "-").slice(0, 19);
  const [year = "", month = "", day = ""] = time.slice(0, 10).split("-");
  return path.join(folder, year, month, day, `rollout-${time}-${session.id}.jsonl`);
}

const PACKAGE = new URL("../package.json", import.meta.url);
const VERSION = (JSON.parse(readFileSync(PACKAGE, "utf8")) as { version: string }).version;

/** Runs the daemon for `kinfold up`. Reads settings only from Kinfold's home and the environment. */
async function main(): Promise<void> {
  const paths = pathsIn(kinfoldHome(process.env));
  const isForeground = process.env["KINFOLD_FOREGROUND"] === "1";
  try {
    const { config, problems } = takeChecked(process.env) ?? (await checkHere(paths));
    const log = openLog({ level: config.logLevel, path: isForeground ? paths.daemonLog : null });
    for (const problem of problems) log.warn({ problem: problemLine(problem) }, "setting was not applied");
    // An unhandled rejection is a bug, but the daemon goes on: ending it would end every agent.
    process.on("unhandledRejection", (error) => log.error({ err: error }, "unhandled promise rejection"));
    const daemon = await startDaemon({ paths, config, log });
    endOnSignal(daemon, log);
  } catch (error) {
    process.stderr.write(`kinfold cannot start: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(1);
  }
}

async function checkHere(paths: Paths): Promise<Checked> {
  const { loadConfig } = await import("./config/load.ts");
  const { home } = paths;
  const loaded = loadConfig({ home, cwd: home, env: process.env });
  if (!showsStorePassword(process.env, process.argv)) return loaded;
  prepareHome(paths);
  const { checked, env } = withoutStorePassword(loaded, process.env);
  const handed = handOver(checked, home);
  replaceProcess(process.argv.slice(1), { ...env, ...handed });
  return takeChecked(handed) ?? checked;
}

function endOnSignal(daemon: Daemon, log: Log): void {
  let isEnding = false;
  const end = (signal: string): void => {
    if (isEnding) process.exit(1);
    isEnding = true;
    log.info({ signal, node: shortId(daemon.store.boot) }, "shutting down");
    daemon.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, "shutdown failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", () => end("SIGTERM"));
  process.on("SIGINT", () => end("SIGINT"));
}

if (import.meta.main || process.env["KINFOLD_FOREGROUND"] === "1") await main();
