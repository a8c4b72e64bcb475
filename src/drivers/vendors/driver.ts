import { existsSync, readFileSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join, relative, sep } from "node:path";
import type { Agent, AgentCommand } from "../../contract/index.ts";
import type { Log } from "../../log.ts";
import { isInside } from "../../system/folder.ts";
import { createAcpDriver } from "../acp/driver.ts";
import type { Dialect, Launch } from "../acp/dialect.ts";
import { agentEnvironment, findCommand } from "../process/environment.ts";
import type { Driver, OpenRequest } from "../port.ts";
import type { ProcessHost } from "../process/process.ts";
import { locateAdapter } from "./adapter.ts";
import type { Surroundings, Vendor } from "./vendor.ts";
import type { Versions } from "./version.ts";

export interface VendorOptions {
  readonly home: string;
  /** The agent's entry in the configuration. */
  readonly own?: AgentCommand | undefined;
  readonly versions: Versions;
  readonly host: ProcessHost;
  readonly log: Log;
}

export function createVendorDriver(vendor: Vendor, options: VendorOptions): Driver {
  const { own } = options;
  const env = [...vendor.env, ...(own?.env ?? [])];
  let version: string | null = null;
  const driver = createAcpDriver({
    name: vendor.name,
    title: own?.title ?? vendor.title,
    command: own?.command ?? [vendor.program],
    env,
    model: own?.model ?? null,
    known: {
      ...vendor.known,
      enforces: vendor.enforces,
      ...(vendor.tools === undefined ? {} : { tools: Object.keys(vendor.tools) }),
      ...(vendor.mcpServers === undefined ? {} : { servers: vendor.mcpServers }),
    },
    async describe() {
      const described = await describe(vendor, options, env);
      ({ version } = described);
      return described;
    },
    dialect: dialectOf(vendor, options, () => version),
    host: options.host,
    log: options.log,
  });
  return { ...driver, howToSignIn: vendor.howToSignIn };
}

export function agentsDirOf(home: string): string {
  return join(home, "agents");
}

/** The person's program, the command line that we start, and what is missing. */
export interface Found {
  readonly program: string | null;
  readonly command: readonly string[];
  readonly problem: string | null;
  readonly howToInstall: string | null;
}

/** Searches anew at every call, because the program or the adapter may have been installed meanwhile. */
export function findVendor(vendor: Vendor, options: Pick<VendorOptions, "home" | "own">): Found {
  const path = process.env["PATH"];
  const program = findCommand(vendor.program, path);
  const { own } = options;
  if (own !== undefined) {
    const isThere = findCommand(own.command[0] ?? "", path) !== null;
    const problem = isThere ? null : `${own.command[0]} was not found on the PATH`;
    const howToInstall = isThere ? null : (own.howToInstall ?? vendor.howToInstall);
    return { program, command: own.command, problem, howToInstall };
  }
  const { speaks } = vendor;
  const adapter =
    "adapter" in speaks ? locateAdapter(speaks.adapter, { agentsDir: agentsDirOf(options.home) }) : null;
  const add = `kinfold agents add ${vendor.name}`;
  if (program === null) {
    const howToInstall = adapter === null ? vendor.howToInstall : `${vendor.howToInstall} && ${add}`;
    return { program, command: [], problem: `${vendor.program} was not found on the PATH`, howToInstall };
  }
  if ("arguments" in speaks) {
    return { program, command: [program, ...speaks.arguments], problem: null, howToInstall: null };
  }
  if (adapter === null || "problem" in adapter) {
    return { program, command: [], problem: adapter?.problem ?? null, howToInstall: add };
  }
  return { program, command: [process.execPath, adapter.path], problem: null, howToInstall: null };
}

function isSignedIn(vendor: Vendor): boolean | null {
  const { env, platform } = process;
  return vendor.signedIn({ env, home: homedir(), platform, has: existsSync, read: readSmall });
}

async function describe(vendor: Vendor, options: VendorOptions, env: readonly string[]) {
  const found = findVendor(vendor, options);
  const seen = agentEnvironment(process.env, { leaseId: "probe", names: env });
  const version = found.program === null ? null : await options.versions.of(found.program, seen);
  const signedIn = found.program === null && found.problem !== null ? null : isSignedIn(vendor);
  const isSignedOut = signedIn === false;
  return {
    installed: found.problem === null,
    version,
    signedIn,
    problem: found.problem ?? (isSignedOut ? "nobody is signed in" : null),
    howToInstall: found.howToInstall,
    howToSignIn: isSignedOut ? vendor.howToSignIn : null,
    uses: found.problem === null ? usesOf(vendor, options, found) : null,
  } satisfies Partial<Agent>;
}

function usesOf({ speaks }: Vendor, { own }: VendorOptions, { program, command }: Found): string {
  if (own !== undefined || !("adapter" in speaks)) return command.join(" ");
  return `${program} through Kinfold's adapter ${speaks.adapter.version}`;
}

function dialectOf(vendor: Vendor, options: VendorOptions, version: () => string | null): Dialect {
  const at = (request: OpenRequest): Surroundings => ({
    closed: closedTo(request.cwd, options.home),
    folder: join(agentsDirOf(options.home), vendor.name),
  });
  const { steer } = vendor.known;
  return {
    ...vendor,
    launch: (request) => launchOf(vendor, options, { request, at: at(request) }),
    meta: (request) => vendor.meta?.(request, at(request)),
    ...(steer === "queue" || steer === "restart" ? { secondPrompt: steer } : {}),
    answers: { full: "allow", ...(vendor.asksInReadOnly === true ? { "read-only": "deny" } : {}) },
    version,
  };
}

function launchOf(
  vendor: Vendor,
  options: VendorOptions,
  { request, at }: { request: OpenRequest; at: Surroundings },
): Launch {
  const found = findVendor(vendor, options);
  if (found.problem !== null) {
    return { ok: false, problem: `${found.problem}; ${found.howToInstall ?? "install it"}` };
  }
  const extra = vendor.launch?.(request, at) ?? {};
  const { speaks } = vendor;
  const isNamed = "programVariable" in speaks && found.program !== null;
  return {
    ok: true,
    command: [...found.command, ...(extra.args ?? [])],
    env: { ...extra.env, ...(isNamed ? { [speaks.programVariable]: found.program } : {}) },
  };
}

/** Returns the paths closed to the agent: Kinfold's home, or all its entries except the one with `cwd`. */
function closedTo(cwd: string, home: string): string[] {
  if (cwd === home || !isInside(cwd, home)) return [home];
  const [own] = relative(home, cwd).split(sep);
  return readdirSync(home)
    .filter((name) => name !== own)
    .map((name) => join(home, name));
}

const SMALL_BYTES = 1_000_000;

function readSmall(path: string): string {
  try {
    return readFileSync(path, "utf8").slice(0, SMALL_BYTES);
  } catch {
    return "";
  }
}
