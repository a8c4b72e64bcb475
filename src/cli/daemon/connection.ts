import { type Client, connect } from "../../client/index.ts";
import { type DaemonFile, readDaemonFile } from "../../config/daemon-file.ts";
import { requireOwnHome } from "../../config/own-home.ts";
import type { Paths } from "../../config/paths.ts";
import { CONTRACT_VERSION, type Health, Refusal } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { type Failure, noDaemon, refused } from "../failure.ts";
import { homeOf, readToken } from "./home.ts";
import { mayRun } from "./process-identity.ts";
import { startDaemon } from "./start-daemon.ts";
import { duration } from "../../text/quantity.ts";

export type { Client };

export interface Connection {
  readonly client: Client;
  readonly health: Health;
  readonly url: string;
  readonly paths: Paths;
}

export const NOT_RUNNING = "The daemon is not running. Start it: kinfold up";

/** Connects to the daemon. If none runs: with `start`, starts one and says so; otherwise throws. */
export async function openConnection(call: Call, options: { start?: boolean } = {}): Promise<Connection> {
  const found = await tryConnection(call);
  if (found !== null) return found;
  if (!options.start || call.env["KINFOLD_URL"]) throw noDaemon("daemon_not_running", NOT_RUNNING);
  const paths = homeOf(call);
  call.io.note("The daemon is not running; starting it.");
  const daemon = await startDaemon(paths, {}, { env: call.env, note: call.io.note });
  call.io.note(`Daemon started (pid ${daemon.pid}) at ${daemon.url}. Stop it: kinfold down`);
  const started = await tryConnection(call);
  if (started === null) throw noDaemon("daemon_not_running", NOT_RUNNING);
  return started;
}

/** Returns null if no daemon runs. On any other problem, throws a `Failure` that says what to do. */
export async function tryConnection(call: Call): Promise<Connection | null> {
  const paths = homeOf(call);
  // A token or address in another user's home would lead to that user's daemon.
  requireOwnHome(paths);
  const named = call.env["KINFOLD_URL"]?.trim().replace(/\/+$/, "");
  const daemon = named ? null : readDaemonFile(paths.daemonFile);
  const url = named || daemon?.url;
  if (!url) return null;
  const token = readToken(paths, call.env);
  if (token === null) {
    if (daemon !== null && !mayRun(daemon)) return null;
    throw noDaemon("token_missing", `There is no token at ${paths.token}.`, [
      "Set KINFOLD_TOKEN, or restart the daemon, which creates one: kinfold down && kinfold up",
    ]);
  }
  const client = connect({ url, token });
  const health = await askHealth(client, { url, daemon, paths });
  if (health === null) return null;
  warnOfVersion(health, call);
  warnOfStore(health, call);
  return { client, health, url, paths };
}

type Where = Pick<Connection, "url" | "paths"> & { readonly daemon: DaemonFile | null };

async function askHealth(client: Client, where: Where): Promise<Health | null> {
  let health: Health;
  try {
    health = await client.health({});
  } catch (error) {
    if (error instanceof Refusal) throw refusedHealth(error, where);
    if (where.daemon !== null && !mayRun(where.daemon)) return null;
    throw unreachable(error, where);
  }
  if (typeof health?.boot !== "string") throw somethingElse(where);
  return health;
}

function refusedHealth(refusal: Refusal, where: Where): Failure {
  if (refusal.code === "unauthorized") {
    return noDaemon("unauthorized", `The daemon at ${where.url} does not accept this token.`, [
      `The token comes from KINFOLD_TOKEN, else from ${where.paths.token}.`,
      "Check that KINFOLD_HOME, KINFOLD_URL and KINFOLD_TOKEN belong together.",
    ]);
  }
  if (refusal.code === "not_found" || refusal.code === "internal") return somethingElse(where);
  return noDaemon(refusal.code, refusal.message);
}

function unreachable(error: unknown, where: Where): Failure {
  const { daemon, url } = where;
  const text =
    daemon === null
      ? `Nothing answers at ${url} (KINFOLD_URL)`
      : `The daemon (pid ${daemon.pid}) does not answer at ${url}`;
  const next =
    daemon === null
      ? ["Check the address, or unset KINFOLD_URL to use the daemon of this machine."]
      : ["Its log: kinfold logs", "Restart it; nothing is lost: kinfold down --force && kinfold up"];
  return noDaemon("daemon_unreachable", `${text}: ${causeOf(error)}.`, next);
}

function somethingElse(where: Where): Failure {
  return noDaemon("not_a_daemon", `The program that answers at ${where.url} is not a Kinfold daemon.`, [
    "Start one on another port: kinfold up --port 4681",
  ]);
}

function warnOfVersion(health: Health, call: Call): void {
  if (health.contract === CONTRACT_VERSION) return;
  const restart = "kinfold down && kinfold up";
  const what = `The daemon is version ${health.version} (contract ${health.contract}); this command uses contract ${CONTRACT_VERSION}.`;
  if (major(health.contract) === major(CONTRACT_VERSION)) {
    call.io.note(`${what} Restart it: ${restart}`);
    return;
  }
  throw refused("version_mismatch", what, [`Restart it: ${restart}`]);
}

function warnOfStore({ storeTrouble }: Health, call: Call): void {
  if (storeTrouble === undefined) return;
  const forMs = Date.now() - storeTrouble.since;
  call.io.note(`${storeTrouble.text}; this has lasted ${duration(forMs)}. The daemon waits for it.`);
}

/** Returns the innermost message, such as `connect ECONNREFUSED 127.0.0.1:4680`. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : causeOf(error.cause);
}

function major(version: string): string {
  return version.split(".")[0] ?? version;
}
