import { ConfigError, type Loaded, loadConfig } from "../config/index.ts";
import type { Call } from "./call.ts";
import { homeOf } from "./daemon/home.ts";

/** Loads the configuration that applies in the current folder. */
export function loadHere(call: Call): Loaded {
  return loadConfig({ home: homeOf(call).home, cwd: process.cwd(), env: call.env });
}

export function loadIfValid(call: Call): Loaded | null {
  try {
    return loadHere(call);
  } catch (error) {
    if (error instanceof ConfigError) return null;
    throw error;
  }
}
