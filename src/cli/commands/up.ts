import { pathToFileURL } from "node:url";
import { isHandedOver, replaceProcess, showsStorePassword } from "../../config/handover.ts";
import { type Paths, prepareHome } from "../../config/paths.ts";
import type { Call } from "../call.ts";
import { tryConnection } from "../daemon/connection.ts";
import { refused } from "../failure.ts";
import { homeOf } from "../daemon/home.ts";
import { DAEMON, daemonEnv, type DaemonSettings, startDaemon, untilAnswers } from "../daemon/start-daemon.ts";
import { duration } from "../../text/quantity.ts";

export async function run(call: Call): Promise<number | void> {
  const paths = homeOf(call);
  const settings = settingsOf(call);
  const { KINFOLD_URL: _elsewhere, ...env } = call.env;
  const running = await tryConnection({ ...call, env });
  if (running !== null) {
    const { pid, startedAt } = running.health;
    if (call.flags.on("foreground")) {
      const text = `The daemon is already running in the background (pid ${pid}) at ${running.url}.`;
      throw refused("already_running", text, ["Stop it first: kinfold down"]);
    }
    return call.io.answer(
      { pid, url: running.url, startedAt, started: false },
      `The daemon has been running for ${duration(Date.now() - startedAt)} (pid ${pid}) at ${running.url}`,
    );
  }
  if (call.flags.on("foreground")) return await inForeground(call, paths, settings);
  const daemon = await startDaemon(paths, settings, { env: call.env, note: call.io.note });
  const text = `${call.io.tick} Daemon started (pid ${daemon.pid}) at ${daemon.url}. Stop it: kinfold down`;
  call.io.answer({ ...daemon, started: true }, text);
}

function settingsOf(call: Call): DaemonSettings {
  const port = call.flags.number("port");
  if (port !== undefined && port > 65_535) {
    throw refused("wrong_use", `There is no port ${port}.`, [
      "A port is a number from 0 to 65535; 0 picks a free one.",
    ]);
  }
  return { port, host: call.flags.text("host"), store: call.flags.text("store") };
}

/** Runs the daemon in this process and never returns. The daemon's signal handlers end the process. */
async function inForeground(call: Call, paths: Paths, settings: DaemonSettings): Promise<never> {
  if (!isHandedOver(process.env)) {
    prepareHome(paths);
    const env = daemonEnv(paths, settings, call.env);
    // An invalid configuration is not handed over. Then no restart hides the password, but the daemon started
    // here only reports what is wrong and exits.
    if (isHandedOver(env) && showsStorePassword(call.env, process.argv)) beginAnew(env);
    for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
    Object.assign(process.env, env);
  }
  process.env["KINFOLD_FOREGROUND"] = "1";
  void announce(call, paths);
  await import(pathToFileURL(DAEMON).href);
  return await new Promise<never>(() => {});
}

/**
 * Restarts this command without the store's password in its arguments and environment. Other programs could
 * read both for as long as the process lives.
 */
function beginAnew(env: NodeJS.ProcessEnv): void {
  const [, ...words] = process.argv;
  const kept = words.filter(
    (word, i) => word !== "--store" && !word.startsWith("--store=") && words[i - 1] !== "--store",
  );
  replaceProcess(kept, env);
}

async function announce(call: Call, paths: Paths): Promise<void> {
  const daemon = await untilAnswers(paths.daemonFile, process.pid, {
    isOver: () => false,
    onWaiting: (what) => call.io.note(`${what}. Waiting for it; Ctrl-C stops.`),
  });
  const text = `kinfold at ${daemon?.url} (pid ${process.pid}). Ctrl-C stops it.`;
  call.io.answer({ ...daemon, started: true }, text);
}
