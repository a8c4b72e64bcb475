import { randomUUID } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Loaded } from "./load.ts";

export type Checked = Pick<Loaded, "config" | "problems">;

const NAME = "KINFOLD_CHECKED";

/**
 * For the environment of a daemon that is about to start: who starts it has read and checked the
 * configuration, so that the daemon need not load every schema for it. The configuration itself goes
 * by a file of its owner's alone: it may hold the password of a store, and every program of the same
 * user can read a process's environment for as long as it lives.
 */
export function handOver({ config, problems }: Checked, home: string): Record<string, string> {
  const path = join(home, `start-${randomUUID()}.json`);
  writeFileSync(path, JSON.stringify({ config, problems }), { mode: 0o600, flag: "wx" });
  return { [NAME]: path };
}

/** Reads the configuration that was handed over and removes its file; null where there is none. */
export function takeChecked(env: Record<string, string | undefined>): Checked | null {
  const path = env[NAME];
  delete env[NAME];
  if (path === undefined) return null;
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Checked;
  } finally {
    rmSync(path, { force: true });
  }
}

export function isHandedOver(env: Readonly<Record<string, string | undefined>>): boolean {
  return env[NAME] !== undefined;
}

/** After a start that failed: a daemon that never ran has not taken it. */
export function forgetChecked(env: Readonly<Record<string, string | undefined>>): void {
  const path = env[NAME];
  if (path !== undefined) rmSync(path, { force: true });
}

/** The environment without the password of a store, and the configuration with it. */
export function withoutStorePassword(
  checked: Checked,
  env: NodeJS.ProcessEnv,
): { checked: Checked; env: NodeJS.ProcessEnv } {
  const { KINFOLD_STORE: _store, PGPASSWORD: password, ...rest } = env;
  const { config } = checked;
  if (!/^postgres(?:ql)?:/.test(config.store) || !URL.canParse(config.store)) {
    return { checked, env: password === undefined ? rest : { ...rest, PGPASSWORD: password } };
  }
  const url = new URL(config.store);
  if (password !== undefined && url.password === "") url.password = encodeURIComponent(password);
  return { checked: { ...checked, config: { ...config, store: url.href } }, env: rest };
}

/** Whether the environment or the command line of this process shows a store's password. */
export function showsStorePassword(env: NodeJS.ProcessEnv, words: readonly string[]): boolean {
  const shown = [env["KINFOLD_STORE"] ?? "", ...words].some((text) =>
    /:\/\/[^/@\s]*:[^/@\s]*@|password=/.test(text),
  );
  return shown || env["PGPASSWORD"] !== undefined;
}

/**
 * Goes on as a new program in the same process: what was in the environment or on the command line of the
 * old one can no longer be read. Returns where the system has no such call, as Windows.
 */
export function replaceProcess(words: readonly string[], env: NodeJS.ProcessEnv): void {
  if (process.execve === undefined || process.platform === "win32") return;
  const variables = Object.entries(env).filter((each): each is [string, string] => each[1] !== undefined);
  process.execve(
    process.execPath,
    [process.execPath, ...process.execArgv, ...words],
    Object.fromEntries(variables),
  );
}
