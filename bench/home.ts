import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Paths, pathsIn, prepareHome } from "../src/config/index.ts";
import { Config } from "../src/contract/index.ts";

/** Runs the work in a temporary home on disk and removes it afterwards. */
export async function inHome<T>(work: (paths: Paths) => Promise<T>): Promise<T> {
  const home = mkdtempSync(path.join(tmpdir(), "kinfold-bench-"));
  const paths = pathsIn(home);
  prepareHome(paths);
  try {
    return await work(paths);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

const MANY = 1_000_000;

/** Returns a configuration whose limits are so high that no measurement reaches them. */
export function benchConfig(more: Partial<Config> = {}): Config {
  const limits = {
    childrenMax: MANY,
    sessionsMax: MANY,
    spawnsPerMinuteMax: MANY,
    spawnsMax: MANY,
    turnsMax: MANY,
    processesMax: MANY,
  };
  return { ...Config.parse({ port: 0, agent: "fake", logLevel: "error", limits }), ...more };
}
