import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Config } from "../contract/index.ts";
import type { Log } from "../log.ts";
import { createAcpDriver } from "./acp/driver.ts";
import { createPiDriver } from "./pi/driver.ts";
import type { Driver } from "./port.ts";
import type { createProcessHost, ProcessHost } from "./process/process.ts";
import type { SandboxReport, SandboxMode } from "./process/sandbox.ts";
import { createVendorDriver } from "./vendors/driver.ts";
import { agentsDirOf, VENDORS } from "./vendors/index.ts";
import { Versions } from "./vendors/version.ts";

export interface DriversOptions {
  readonly config: Pick<Config, "agents">;
  /** Where the sim agent keeps its sessions. */
  readonly simDir: string;
  /** Kinfold's home, hidden from agents. If absent, the folder above `simDir` is used and not hidden. */
  readonly home?: string;
  readonly sandbox: SandboxMode;
  readonly log: Log;
  /** The agent that runs inside this process, for tests and benchmarks. */
  readonly fake?: Driver;
}

export function createDrivers(options: DriversOptions): Map<string, Driver> {
  const { log, config } = options;
  const home = options.home ?? dirname(options.simDir);
  const host = lateHost({ sandbox: options.sandbox, log, home: options.home });
  const drivers = new Map<string, Driver>();
  const versions = new Versions(join(agentsDirOf(home), "versions.json"));
  for (const vendor of VENDORS) {
    const own = config.agents[vendor.name];
    drivers.set(vendor.name, createVendorDriver(vendor, { home, own, versions, host, log }));
  }
  drivers.set("pi", createPiDriver({ own: config.agents["pi"], versions, host }));
  for (const [name, agent] of Object.entries(config.agents)) {
    // A vendor in the configuration keeps its driver; the configuration only changes its command.
    if (drivers.has(name)) continue;
    drivers.set(name, createAcpDriver({ ...agent, name, title: agent.title ?? name, host, log }));
  }
  if (drivers.has("sim")) log.warn({}, "configuration overrides the built-in agent sim");
  else drivers.set("sim", createSimDriver({ host, simDir: options.simDir, log }));
  if (options.fake) drivers.set("fake", options.fake);
  return drivers;
}

export async function reportSandbox(sandbox: SandboxMode): Promise<SandboxReport> {
  return (await import("./process/sandbox.ts")).describeSandbox(sandbox);
}

/** Loads the process host only when the first process starts, so that the daemon starts faster. */
function lateHost(options: Parameters<typeof createProcessHost>[0]): ProcessHost {
  let made: Promise<ProcessHost> | null = null;
  return {
    async start(spec) {
      made ??= import("./process/process.ts").then((module) => module.createProcessHost(options));
      return (await made).start(spec);
    },
  };
}

/** The agent that ships with Kinfold. It is driven over ACP in its own process, as vendors' agents are. */
export function createSimDriver(options: { host: ProcessHost; simDir: string; log: Log }): Driver {
  const path = fileURLToPath(new URL(`./sim/agent${extname(import.meta.url)}`, import.meta.url));
  return createAcpDriver({
    name: "sim",
    title: "Sim",
    command: [process.execPath, path],
    env: [],
    extraEnv: {
      KINFOLD_SIM_DIR: options.simDir,
      // Without a compile cache Node strips the types at every start, which takes four times as long.
      NODE_COMPILE_CACHE: join(options.simDir, "compile-cache"),
    },
    known: {
      version: "1.0.0",
      signedIn: true,
      uses: null,
      steer: "inject",
      load: true,
      fork: true,
      cost: "usd",
      metersCalls: true,
      metersCost: true,
      models: ["sim-1"],
      defaultModel: "sim-1",
      enforces: { "read-only": "agent", ask: "asked", workspace: "asked", full: "agent" },
      tools: ["Write", "Bash"],
      // Sim never uses the person's MCP servers.
      servers: "named",
    },
    dialect: {
      meta: ({ permission, tools, notTools }) => ({ kinfold: { permission, tools, notTools } }),
    },
    host: options.host,
    log: options.log,
  });
}
