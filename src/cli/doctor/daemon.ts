import type { Call } from "../call.ts";
import { loadIfValid } from "../configuration.ts";
import { bad, type Check, good, optional } from "./check.ts";
import { type Connection, tryConnection } from "../daemon/connection.ts";
import { Failure } from "../failure.ts";
import { answers } from "../daemon/start-daemon.ts";
import { duration } from "../../text/quantity.ts";

/** Checks the daemon, its port and its store. The store is checked only if the daemon runs. */
export async function checkDaemon(call: Call): Promise<{ checks: Check[]; connection: Connection | null }> {
  try {
    const connection = await tryConnection(call);
    if (connection === null) {
      const daemon = optional("daemon", "not running", "start it: kinfold up");
      return { checks: [daemon, await checkPort(call)], connection };
    }
    const { health, url } = connection;
    const running = `running ${duration(Date.now() - health.startedAt)} (pid ${health.pid})`;
    const daemon = good("daemon", `${health.version}, ${running} at ${url}`);
    const store = health.ok
      ? good("store", health.store)
      : bad("store", health.store, "its log: kinfold logs");
    return { checks: [daemon, store], connection };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { checks: [bad("daemon", error.message, error.next.join("; ") || null)], connection: null };
  }
}

async function checkPort(call: Call): Promise<Check> {
  const config = loadIfValid(call)?.config;
  if (config === undefined) return bad("port", "unknown until the configuration is valid", null);
  const { port } = config;
  if (port === 0) return good("port", "a free one is picked at every start");
  const host = config.host === "0.0.0.0" ? "127.0.0.1" : config.host;
  if (!(await answers(`http://${host}:${port}`))) return good("port", `${port} is free`);
  return bad("port", `${port} is taken by another program`, `use another: kinfold up --port ${port + 1}`);
}
