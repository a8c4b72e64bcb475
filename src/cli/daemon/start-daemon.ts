import { fileSize } from "../../system/file-size.ts";
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { forgetChecked, handOver, withoutStorePassword } from "../../config/handover.ts";
import { type DaemonFile, readDaemonFile } from "../../config/daemon-file.ts";
import { loadConfig } from "../../config/load.ts";
import { type Paths, prepareHome } from "../../config/paths.ts";
import { ConfigError } from "../../config/problem.ts";
import { failed, type Failure } from "../failure.ts";
import { cleanLine } from "../terminal/text.ts";

export interface DaemonSettings {
  readonly port?: number | undefined;
  readonly host?: string | undefined;
  readonly store?: string | undefined;
}

export const DAEMON = fileURLToPath(new URL("../../daemon.ts", import.meta.url));

/**
 * Returns the environment for a new daemon. Secrets are passed in a file, because other programs can read a
 * process's command line and environment.
 */
export function daemonEnv(paths: Paths, settings: DaemonSettings, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { KINFOLD_TOKEN: _token, KINFOLD_URL: _url, ...rest } = env;
  const compiled = getCompileCacheDir();
  const own = {
    ...rest,
    ...(compiled === undefined ? {} : { NODE_COMPILE_CACHE: compiled }),
    KINFOLD_HOME: paths.home,
    ...(settings.port === undefined ? {} : { KINFOLD_PORT: String(settings.port) }),
    ...(settings.host === undefined ? {} : { KINFOLD_HOST: settings.host }),
    ...(settings.store === undefined ? {} : { KINFOLD_STORE: settings.store }),
  };
  return withChecked(paths, own);
}

/** Checks the configuration and hands it to the daemon if valid. If not, the daemon reports the problems. */
function withChecked({ home }: Paths, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  try {
    const loaded = loadConfig({ home, cwd: home, env });
    const { checked, env: rest } = withoutStorePassword(loaded, env);
    return { ...rest, ...handOver(checked, home) };
  } catch (error) {
    if (error instanceof ConfigError) return env;
    throw error;
  }
}

/**
 * Starts a daemon in the background and resolves when it answers; rejects with the reason if it does not.
 * Calls `note` with the reason if the daemon has to wait, for example for its database.
 */
export async function startDaemon(
  paths: Paths,
  settings: DaemonSettings,
  { env, note }: { env: NodeJS.ProcessEnv; note: (text: string) => void },
): Promise<DaemonFile> {
  prepareHome(paths);
  const from = fileSize(paths.daemonLog);
  const log = openSync(paths.daemonLog, "a", 0o600);
  const childEnv = daemonEnv(paths, settings, env);
  const child = spawn(process.execPath, [...process.execArgv, DAEMON], {
    cwd: paths.home,
    detached: true,
    stdio: ["ignore", log, log],
    env: childEnv,
  });
  closeSync(log);
  let exit: string | null = null;
  child.once("exit", (code, signal) => void (exit = signal ?? `code ${code}`));
  child.once("error", (error) => void (exit = error.message));
  child.unref();

  const deadline = Date.now() + START_MS;
  let waiting: string | undefined;
  const daemon = await untilAnswers(paths.daemonFile, child.pid, {
    isOver: () => exit !== null || Date.now() >= deadline,
    onWaiting: (what) => {
      waiting = what;
      note(`${what}. Waiting for it.`);
    },
  });
  if (daemon !== null) return daemon;
  if (exit !== null) {
    forgetChecked(childEnv);
    throw whyNot(paths, settings, { exit, from });
  }
  throw waiting === undefined ? silent(child.pid) : stillWaiting(child.pid, waiting);
}

/**
 * Resolves when the daemon with this pid answers, or to null once `isOver` returns true. Calls `onWaiting`
 * with each new reason why the daemon cannot start yet.
 */
export async function untilAnswers(
  file: string,
  pid: number | undefined,
  { isOver, onWaiting }: { isOver: () => boolean; onWaiting: (what: string) => void },
): Promise<DaemonFile | null> {
  let waiting: string | undefined;
  while (!isOver()) {
    const daemon = readDaemonFile(file);
    const own = daemon?.pid === pid ? daemon : null;
    if (own?.waiting !== undefined && own.waiting !== waiting) onWaiting(own.waiting);
    waiting = own?.waiting ?? waiting;
    if (own !== null && own.waiting === undefined && (await answers(own.url))) return own;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return null;
}

function silent(pid: number | undefined): Failure {
  return failed("daemon_silent", `The daemon (pid ${pid}) did not answer within ${START_MS / 1000} s.`, [
    "Its log: kinfold logs",
    "Stop it: kinfold down --force",
  ]);
}

function stillWaiting(pid: number | undefined, waiting: string): Failure {
  const text = `${waiting}. The daemon (pid ${pid}) keeps waiting and starts as soon as it answers.`;
  return failed("store_waiting", text, [
    "Start that server, or correct its address: kinfold config",
    "Follow it: kinfold logs",
    "Stop waiting: kinfold down",
  ]);
}

/** Returns whether a program accepts connections at this address. It need not be our daemon. */
export async function answers(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return await new Promise((resolve) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
    socket.setTimeout(1000, () => socket.destroy(new Error("timeout")));
    socket.once("connect", () => {
      socket.end();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

function whyNot(paths: Paths, settings: DaemonSettings, end: { exit: string; from: number }): Failure {
  const said = lastWords(paths.daemonLog, end.from);
  if (/EADDRINUSE|address already in use|is taken/i.test(said.join("\n"))) {
    const port = settings.port ?? /(?:port |:)(\d{2,5})\b/i.exec(said.join("\n"))?.[1] ?? "4680";
    return failed("port_taken", `Port ${port} is taken by another program.`, [
      `Use another: kinfold up --port ${Number(port) + 1}`,
      `Find that program: lsof -i :${port}`,
    ]);
  }
  return failed("daemon_failed", `The daemon did not start (it ended with ${end.exit}).`, [
    ...said.slice(-8),
    `Its whole log: kinfold logs`,
  ]);
}

/** Returns what the daemon has logged since it was started, as readable lines. */
function lastWords(log: string, from: number): string[] {
  const text = readFileSync(log).subarray(from).toString("utf8");
  return text.split("\n").flatMap((line) => {
    if (line.trim() === "" || /^\s+at /.test(line)) return [];
    try {
      const record = JSON.parse(line) as { msg?: unknown; err?: { message?: unknown } };
      return [cleanLine([record.msg, record.err?.message].filter(Boolean).join(": "))];
    } catch {
      return [cleanLine(line)];
    }
  });
}

const START_MS = 60_000;
