import { randomUUID } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Loaded } from "./load.ts";

export type Checked = Pick<Loaded, "config" | "problems">;

const NAME = "KINFOLD_CHECKED";

/**
 * Writes a checked configuration into a file for a new daemon, so that the daemon need not load every schema.
 * It is a file that only the owner can read, because the configuration may contain the store's password and
 * other programs could read it from an environment variable. Returns the variable that names the file.
 */
export function handOver({ config, problems }: Checked, home: string): Record<string, string> {
  const path = join(home, `start-${randomUUID()}.json`);
  writeFileSync(path, JSON.stringify({ config, problems }), { mode: 0o600, flag: "wx" });
  return { [NAME]: path };
}

/** Reads the configuration that `handOver` wrote, and deletes its file. */
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

/** Deletes the file of `handOver` after a failed start, because the daemon may not have read the file. */
export function forgetChecked(env: Readonly<Record<string, string | undefined>>): void {
  const path = env[NAME];
  if (path !== undefined) rmSync(path, { force: true });
}

/** Moves the store's password from the environment into the configuration. */
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

/** True if the environment or the command line of this process contains a store's password. */
export function showsStorePassword(env: NodeJS.ProcessEnv, words: readonly string[]): boolean {
  const shown = [env["KINFOLD_STORE"] ?? "", ...words].some((text) =>
    /:\/\/[^/@\s]*:[^/@\s]*@|password=/.test(text),
  );
  return shown || env["PGPASSWORD"] !== undefined;
}

/**
 * Replaces this program in the same process (execve), so that its old environment and command line can no
 * longer be read. Returns on systems without execve, such as Windows.
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
