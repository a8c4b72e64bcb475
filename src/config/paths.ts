import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { requireOwnHome } from "./own-home.ts";

export interface Paths {
  readonly home: string;
  readonly configFile: string;
  readonly database: string;
  readonly lock: string;
  readonly token: string;
  readonly daemonFile: string;
  readonly logs: string;
  readonly daemonLog: string;
  readonly rollouts: string;
  readonly messages: string;
  readonly profiles: string;
  readonly sim: string;
}

export function pathsIn(home: string): Paths {
  const logs = join(home, "logs");
  return {
    home,
    configFile: join(home, "kinfold.yaml"),
    database: join(home, "kinfold.db"),
    lock: join(home, "kinfold.lock"),
    token: join(home, "token"),
    daemonFile: join(home, "daemon.json"),
    logs,
    daemonLog: join(logs, "daemon.log"),
    rollouts: join(home, "rollouts"),
    messages: join(home, "messages"),
    profiles: join(home, "profiles"),
    sim: join(home, "sim"),
  };
}

/** Returns `KINFOLD_HOME`, else `.kinfold` in the person's home folder. Always absolute. */
export function kinfoldHome(env: Readonly<Record<string, string | undefined>>): string {
  const named = env.KINFOLD_HOME?.trim();
  return named ? resolve(named) : join(homedir(), ".kinfold");
}

/** Creates the home and its folders for their owner only. Refuses a home of another user. */
export function prepareHome(paths: Paths): void {
  requireOwnHome(paths);
  for (const folder of [paths.home, paths.logs, paths.rollouts, paths.profiles, paths.sim]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  }
}
