import { sendSignal } from "../../system/proc.ts";
import { type DaemonFile, readDaemonFile } from "../../config/daemon-file.ts";
import type { Health } from "../../contract/index.ts";
import type { Call } from "../call.ts";
import { tryConnection } from "../daemon/connection.ts";
import { failed, Failure } from "../failure.ts";
import { homeOf } from "../daemon/home.ts";
import { isProvenDaemon, mayRun, waitUntilGone } from "../daemon/process-identity.ts";
import { count } from "../../text/quantity.ts";

export async function run(call: Call): Promise<void> {
  const daemon = readDaemonFile(homeOf(call).daemonFile);
  if (daemon === null || !mayRun(daemon))
    return call.io.answer({ stopped: false }, "The daemon is not running.");
  const open = await identify(call, daemon);
  sendSignal(daemon.pid, "SIGTERM");
  let isGone = await waitUntilGone(daemon.pid, call.flags.on("force") ? FORCE_MS : STOP_MS);
  if (!isGone && call.flags.on("force")) {
    sendSignal(daemon.pid, "SIGKILL");
    isGone = await waitUntilGone(daemon.pid, FORCE_MS);
  }
  if (!isGone) {
    throw failed("still_running", `The daemon (pid ${daemon.pid}) has not stopped yet.`, [
      "Kill it; nothing is lost: kinfold down --force",
      "Its log: kinfold logs",
    ]);
  }
  const later =
    open > 0 ? ` ${count(open, "session")} had unfinished work, which continues at the next start.` : "";
  const text = `${call.io.tick} Daemon stopped (pid ${daemon.pid}).${later}`;
  call.io.answer({ stopped: true, pid: daemon.pid, open }, text);
}

/**
 * Checks that the recorded pid still belongs to the daemon, because the system may have given it to another
 * program. Proof is either an answer with the recorded boot id, or a process with the recorded start time.
 * Returns the number of open sessions.
 */
async function identify(call: Call, daemon: DaemonFile): Promise<number> {
  const { KINFOLD_URL: _elsewhere, ...env } = call.env;
  let health: Health | null = null;
  try {
    health = (await tryConnection({ ...call, env }))?.health ?? null;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
  }
  if (health?.pid === daemon.pid && health.boot === daemon.boot) return health.counts.open;
  if (isProvenDaemon(daemon)) return 0;
  throw failed("not_a_daemon", `Process ${daemon.pid} is not the recorded daemon, so it was not stopped.`, [
    `If no daemon runs, remove the record: rm ${homeOf(call).daemonFile}`,
  ]);
}

const STOP_MS = 30_000;
const FORCE_MS = 10_000;
