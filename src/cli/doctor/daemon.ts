import { ConfigError, loadConfig } from "../../config/index.ts";
import type { Call } from "../call.ts";
import type { Check } from "./check.ts";
import { type Connection, tryConnection } from "../daemon/connection.ts";
import { Failure } from "../failure.ts";
import { homeOf } from "../daemon/home.ts";
import { answers } from "../daemon/start-daemon.ts";
import { duration } from "../../text/quantity.ts";

/** Checks the daemon, its port and its store. The store is checked only if the daemon runs. */
export async function checkDaemon(call: Call): Promise<{ checks: Check[]; connection: Connection | null }> {
  try {
    const connection = await tryConnection(call);
    if (connection === null) return { checks: [notRunning(), await checkPort(call)], connection };
    const { health, url } = connection;
    const checks = [
      {
        name: "daemon",
        ok: true,
        text: `${health.version}, running ${duration(Date.now() - health.startedAt)} (pid ${health.pid}) at ${url}`,
        advice: null,
      },
      {
        name: "store",
        ok: health.ok,
        text: health.store,
        advice: health.ok ? null : "its log: kinfold logs",
      },
    ];
    return { checks, connection };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return {
      checks: [{ name: "daemon", ok: false, text: error.message, advice: error.next.join("; ") || null }],
      connection: null,
    };
  }
}

function notRunning(): Check {
  return { name: "daemon", ok: false, optional: true, text: "not running", advice: "start it: kinfold up" };
}

async function checkPort(call: Call): Promise<Check> {
  const name = "port";
  try {
    const { config } = loadConfig({ home: homeOf(call).home, cwd: process.cwd(), env: call.env, flags: {} });
    if (config.port === 0)
      return { name, ok: true, text: "a free one is picked at every start", advice: null };
    const isTaken = await answers(
      `http://${config.host === "0.0.0.0" ? "127.0.0.1" : config.host}:${config.port}`,
    );
    if (!isTaken) return { name, ok: true, text: `${config.port} is free`, advice: null };
    return {
      name,
      ok: false,
      text: `${config.port} is taken by another program`,
      advice: `use another: kinfold up --port ${config.port + 1}`,
    };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { name, ok: false, text: "unknown until the configuration is valid", advice: null };
  }
}
