import { isAlive } from "../../system/proc.ts";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { findCommand } from "../process/environment.ts";
import { readPackage } from "./version.ts";

/** A program of the ACP project that starts a vendor's agent and speaks ACP for it. */
export interface AdapterPackage {
  readonly name: string;
  readonly package: string;
  /** Pinned: if the newest version does not support the Node in use, npm silently installs an older one. */
  readonly version: string;
  readonly entry: string;
  /** The approximate size after installation, for a progress bar. */
  readonly installedBytes: number;
}

export interface AdapterLocation {
  /** Kinfold's folder of adapters: `<home>/agents`. */
  readonly agentsDir: string;
  /** Used instead of the npm on the PATH. */
  readonly npm?: string;
}

export interface InstallProgress {
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export type InstallResult =
  | { readonly ok: true; readonly path: string; readonly version: string; readonly bytes: number }
  | { readonly ok: false; readonly message: string };

/** Returns the adapter's script if the pinned version is installed, else why it cannot be used. */
export function locateAdapter(
  adapter: AdapterPackage,
  location: AdapterLocation,
): { readonly path: string } | { readonly problem: string } {
  const folder = join(location.agentsDir, adapter.name, "node_modules", adapter.package);
  const path = join(folder, adapter.entry);
  if (!existsSync(path)) return { problem: "Kinfold's adapter for it is not installed" };
  const { version = "unknown" } = readPackage(folder);
  if (version === adapter.version) return { path };
  const problem = `Kinfold's adapter for it is version ${String(version)}, but version ${adapter.version} is needed`;
  return { problem };
}

/**
 * Installs the adapter without the vendor's program, because the person's own copy is used. Installs into a
 * temporary folder and renames it when it is complete. Never rejects.
 */
export async function installAdapter(
  adapter: AdapterPackage,
  location: AdapterLocation,
  onProgress: (progress: InstallProgress) => void = () => undefined,
): Promise<InstallResult> {
  const target = join(location.agentsDir, adapter.name);
  const making = join(location.agentsDir, `.${adapter.name}-${process.pid}`);
  try {
    await mkdir(making, { recursive: true, mode: 0o700 });
    await removeAbandoned(adapter, location);
    await writeFile(join(making, "package.json"), '{ "private": true }\n');
    const watch = watchSize(making, adapter.installedBytes, onProgress);
    const message = await runNpm(making, `${adapter.package}@${adapter.version}`, location.npm);
    await watch.end();
    if (message !== null) return { ok: false, message };
    await rm(target, { recursive: true, force: true });
    await rename(making, target);
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  const located = locateAdapter(adapter, location);
  if ("problem" in located) return { ok: false, message: located.problem };
  onProgress({ doneBytes: adapter.installedBytes, totalBytes: adapter.installedBytes });
  return { ok: true, path: located.path, version: adapter.version, bytes: await bytesIn(target) };
}

/** Removes folders left by interrupted installations: those whose name has the pid of a dead process. */
async function removeAbandoned({ name }: AdapterPackage, { agentsDir }: AdapterLocation): Promise<void> {
  for (const folder of await readdir(agentsDir)) {
    if (!folder.startsWith(`.${name}-`) || isAlive(Number(folder.slice(name.length + 2)))) continue;
    await rm(join(agentsDir, folder), { recursive: true, force: true });
  }
}

const ARGUMENTS = [
  "install",
  "--omit=optional",
  "--omit=dev",
  "--ignore-scripts",
  "--no-audit",
  "--no-fund",
  "--no-package-lock",
  "--loglevel=error",
  "--save-exact",
  // By default npm retries for more than a minute before it reports that there is no network.
  "--fetch-retry-mintimeout=1000",
  "--fetch-retry-maxtimeout=4000",
];
const SIZE_MS = 250;
const INSTALL_MS = 600_000;

/** Resolves to npm's error, or null. Runs npm with our Node, because npm picks versions for its own Node. */
function runNpm(cwd: string, wanted: string, own?: string): Promise<string | null> {
  const nodeFolder = dirname(process.execPath);
  const path = [nodeFolder, process.env["PATH"] ?? ""].join(delimiter);
  const npm = own ?? findCommand("npm", path);
  if (npm === null) return Promise.resolve("npm was not found on the PATH");
  const env = { ...process.env, PATH: path, npm_config_update_notifier: "false" };
  const { spawn } = process.getBuiltinModule("node:child_process");
  const child = spawn(npm, [...ARGUMENTS, wanted], { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  const timer = setTimeout(() => child.kill("SIGKILL"), INSTALL_MS);
  let said = "";
  child.stderr.on("data", (chunk: Buffer) => {
    said = (said + chunk.toString("utf8")).slice(-4_000);
  });
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve(code === 0 ? null : `npm could not install ${wanted}: ${errorIn(said) || `exit ${code}`}`);
    });
  });
}

/** Returns npm's error message without its codes and the path of its log. */
function errorIn(said: string): string {
  return said
    .split("\n")
    .map((line) => line.replace(/^npm (?:error|ERR!) ?/, "").trim())
    .filter((line) => line !== "" && !/^(?:code|errno|syscall) |^A complete log|^npm warn/i.test(line))
    .slice(-5)
    .join(" ");
}

/** Measures the progress by the size of the folder, because npm does not report its progress to a program. */
function watchSize(folder: string, totalBytes: number, onProgress: (progress: InstallProgress) => void) {
  let isOver = false;
  const measuring = (async () => {
    while (!isOver) {
      const doneBytes = Math.min(await bytesIn(folder), Math.floor(totalBytes * 0.99));
      onProgress({ doneBytes, totalBytes });
      await new Promise((resolve) => setTimeout(resolve, SIZE_MS));
    }
  })();
  return {
    end(): Promise<void> {
      isOver = true;
      return measuring;
    },
  };
}

async function bytesIn(folder: string): Promise<number> {
  try {
    const names = await readdir(folder, { recursive: true, withFileTypes: true });
    const sizes = names
      .filter((one) => one.isFile())
      .map(async (one) => (await stat(join(one.parentPath, one.name))).size);
    return (await Promise.allSettled(sizes)).reduce(
      (sum, one) => sum + (one.status === "fulfilled" ? one.value : 0),
      0,
    );
  } catch {
    // npm moved a folder during the measurement. The next measurement finds it.
    return 0;
  }
}
