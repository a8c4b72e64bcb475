import { fileSize } from "../../system/file-size.ts";
import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { ConfigError, type Paths, problemLine } from "../../config/index.ts";
import type { Call } from "../call.ts";
import { loadHere } from "../configuration.ts";
import { bad, type Check, good, optional } from "./check.ts";
import { homeOf } from "../daemon/home.ts";
import { bytes } from "../../text/quantity.ts";

export async function checkMachine(call: Call): Promise<Check[]> {
  const paths = homeOf(call);
  return [
    checkNode(),
    checkConfig(call, paths),
    checkHome(paths),
    checkToken(paths),
    await checkDisk(paths),
    await checkSandbox(call),
    await checkGit(),
  ];
}

function checkNode(): Check {
  const version = process.versions.node;
  return Number.parseInt(version) >= 24
    ? good("node", version)
    : bad("node", version, "install Node 24 or newer");
}

function checkConfig(call: Call, paths: Paths): Check {
  const name = "configuration";
  try {
    const [first] = loadHere(call).problems;
    if (first !== undefined) return optional(name, problemLine(first), "see: kinfold config");
    return good(name, existsSync(paths.configFile) ? paths.configFile : "defaults (no file)");
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return bad(name, error.problems.map(problemLine).join("; "), "fix it: kinfold config edit");
  }
}

function checkHome({ home }: Paths): Check {
  const name = "home";
  const stat = statSync(home, { throwIfNoEntry: false });
  if (stat === undefined) return good(name, `${home} (created at the first start)`);
  if (!isWritable(home))
    return bad(name, `${home} cannot be written`, "take ownership of it, or set KINFOLD_HOME");
  const mode = stat.mode & 0o777;
  if ((mode & 0o077) === 0) return good(name, home);
  return bad(name, `${home} can be read by others (mode ${mode.toString(8)})`, `chmod 700 ${home}`);
}

function checkToken({ token }: Paths): Check {
  const name = "token";
  const stat = statSync(token, { throwIfNoEntry: false });
  if (stat === undefined) return good(name, "created at the first start");
  const mode = (stat.mode & 0o777).toString(8);
  if ((stat.mode & 0o077) === 0) return good(name, `only you can read it (mode ${mode.padStart(4, "0")})`);
  return bad(name, `others can read it (mode ${mode})`, `chmod 600 ${token}`);
}

async function checkDisk(paths: Paths): Promise<Check> {
  let folder = paths.home;
  while (!existsSync(folder)) folder = dirname(folder);
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  const size = fileSize(paths.database) + fileSize(`${paths.database}-wal`);
  const text = `${bytes(free)} free${size > 0 ? `, the database takes ${bytes(size)}` : ""}`;
  if (free > DISK_MIN) return good("disk", text);
  return bad("disk", text, "free some space: a full disk stops all work");
}

async function checkSandbox(call: Call): Promise<Check> {
  const { ownSandbox } = await import("./own-agents.ts");
  const { kind, text, problems } = await ownSandbox(call);
  const name = "sandbox";
  if (kind === "none") return bad(name, text, "set sandbox: auto, or fix it");
  const why = problems.length === 0 ? "" : ` (${problems.join("; ")})`;
  if (kind !== "guard" || process.platform !== "linux") return good(name, `${text}${why}`);
  const advice = "for a stronger sandbox, install bubblewrap or allow this user to create namespaces";
  return optional(name, `${text}${why}`, advice);
}

async function checkGit(): Promise<Check> {
  try {
    const { stdout } = await promisify(execFile)("git", ["--version"], { timeout: 5000 });
    return good("git", stdout.trim().replace(/^git version /, ""));
  } catch {
    return optional("git", "not found", "agents that work on code need it: install git");
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const DISK_MIN = 512 * 1024 ** 2;
