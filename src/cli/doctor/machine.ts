import { fileSize } from "../../system/file-size.ts";
import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { ConfigError, loadConfig, type Paths, problemLine } from "../../config/index.ts";
import type { Call } from "../call.ts";
import type { Check } from "./check.ts";
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
  const [major = 0] = process.versions.node.split(".").map(Number);
  const ok = major >= 24;
  return { name: "node", ok, text: process.versions.node, advice: ok ? null : "install Node 24 or newer" };
}

function checkConfig(call: Call, paths: Paths): Check {
  const name = "configuration";
  try {
    const { problems } = loadConfig({ home: paths.home, cwd: process.cwd(), env: call.env, flags: {} });
    const text = existsSync(paths.configFile) ? paths.configFile : "defaults (no file)";
    const [first] = problems;
    if (first === undefined) return { name, ok: true, text, advice: null };
    return { name, ok: false, optional: true, text: problemLine(first), advice: "see: kinfold config" };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      name,
      ok: false,
      text: error.problems.map(problemLine).join("; "),
      advice: "fix it: kinfold config edit",
    };
  }
}

function checkHome(paths: Paths): Check {
  const name = "home";
  const stat = statSync(paths.home, { throwIfNoEntry: false });
  if (stat === undefined)
    return { name, ok: true, text: `${paths.home} (created at the first start)`, advice: null };
  if (!isWritable(paths.home)) {
    return {
      name,
      ok: false,
      text: `${paths.home} cannot be written`,
      advice: "take ownership of it, or set KINFOLD_HOME",
    };
  }
  const mode = stat.mode & 0o777;
  if ((mode & 0o077) !== 0) {
    return {
      name,
      ok: false,
      text: `${paths.home} can be read by others (mode ${mode.toString(8)})`,
      advice: `chmod 700 ${paths.home}`,
    };
  }
  return { name, ok: true, text: paths.home, advice: null };
}

function checkToken(paths: Paths): Check {
  const name = "token";
  const stat = statSync(paths.token, { throwIfNoEntry: false });
  if (stat === undefined) return { name, ok: true, text: "created at the first start", advice: null };
  const mode = stat.mode & 0o777;
  if ((mode & 0o077) === 0)
    return {
      name,
      ok: true,
      text: `only you can read it (mode ${mode.toString(8).padStart(4, "0")})`,
      advice: null,
    };
  return {
    name,
    ok: false,
    text: `others can read it (mode ${mode.toString(8)})`,
    advice: `chmod 600 ${paths.token}`,
  };
}

async function checkDisk(paths: Paths): Promise<Check> {
  let folder = paths.home;
  while (!existsSync(folder)) folder = dirname(folder);
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  const size = fileSize(paths.database) + fileSize(`${paths.database}-wal`);
  const ok = free > DISK_MIN;
  const text = `${bytes(free)} free${size > 0 ? `, the database takes ${bytes(size)}` : ""}`;
  return { name: "disk", ok, text, advice: ok ? null : "free some space: a full disk stops all work" };
}

async function checkSandbox(call: Call): Promise<Check> {
  const { ownSandbox } = await import("./own-agents.ts");
  const { kind, text, problems } = await ownSandbox(call);
  const name = "sandbox";
  if (kind === "none") return { name, ok: false, text, advice: "set sandbox: auto, or fix it" };
  const why = problems.length === 0 ? "" : ` (${problems.join("; ")})`;
  if (kind !== "guard" || process.platform !== "linux")
    return { name, ok: true, text: `${text}${why}`, advice: null };
  const advice = "for a stronger sandbox, install bubblewrap or allow this user to create namespaces";
  return { name, ok: false, optional: true, text: `${text}${why}`, advice };
}

async function checkGit(): Promise<Check> {
  try {
    const { stdout } = await promisify(execFile)("git", ["--version"], { timeout: 5000 });
    return { name: "git", ok: true, text: stdout.trim().replace(/^git version /, ""), advice: null };
  } catch {
    return {
      name: "git",
      ok: false,
      optional: true,
      text: "not found",
      advice: "agents that work on code need it: install git",
    };
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
