import { existsSync } from "node:fs";
import type { Call } from "../call.ts";
import { homeOf } from "../daemon/home.ts";

export async function run(call: Call): Promise<void> {
  const { home, configFile, database, lock, token, daemonFile, daemonLog, rollouts, profiles } = homeOf(call);
  const paths = {
    home,
    config: configFile,
    database,
    lock,
    token,
    daemon: daemonFile,
    log: daemonLog,
    rollouts,
    profiles,
  };
  if (call.io.json) return call.io.answer(paths);
  for (const [name, path] of Object.entries(paths)) {
    call.io.line(
      `${name.padEnd(10)}${path}${existsSync(path) ? "" : call.io.paint("soft", "  (does not exist yet)")}`,
    );
  }
}
