import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

export const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/**
 * Runs the real CLI with a temporary home, for a person with an empty home folder, and with a shared compile
 * cache so that it starts fast. A daemon without `--port` gets a free port.
 */
export class CliHome {
  readonly home = mkdtempSync(join(tmpdir(), "kinfold-cli-"));
  /** The person's home folder, `~`. */
  readonly person = mkdtempSync(join(tmpdir(), "kinfold-person-"));
  readonly #own = process.env["NODE_COMPILE_CACHE"] ? null : mkdtempSync(join(tmpdir(), "kinfold-compiled-"));
  readonly #compiled = this.#own ?? process.env["NODE_COMPILE_CACHE"];

  get env(): NodeJS.ProcessEnv {
    const clean = Object.entries(process.env).filter(([name]) => !name.startsWith("KINFOLD_"));
    return {
      ...Object.fromEntries(clean),
      HOME: this.person,
      KINFOLD_HOME: this.home,
      KINFOLD_PORT: "0",
      NODE_COMPILE_CACHE: this.#compiled,
    };
  }

  start(args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
    return spawn(process.execPath, [MAIN, ...args], { env: { ...this.env, ...env } });
  }

  async run(
    args: readonly string[],
    options: { env?: NodeJS.ProcessEnv; input?: string } = {},
  ): Promise<Ran> {
    const child = this.start(args, options.env);
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    child.stdin?.end(options.input ?? "");
    const [out, err, code] = await Promise.all([text(child.stdout!), text(child.stderr!), ended]);
    assert.doesNotMatch(err + out, /^\s+at .*:\d+:\d+\)?$/m, "never a stack trace");
    return { code, out, err };
  }

  remove(): void {
    for (const folder of [this.home, this.person, this.#own])
      if (folder !== null) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
