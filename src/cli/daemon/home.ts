import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { kinfoldHome, type Paths, pathsIn } from "../../config/paths.ts";
import type { Call } from "../call.ts";
import { type Failure, noDaemon } from "../failure.ts";

/** Returns the home of this call: `--home`, else `KINFOLD_HOME`, else `~/.kinfold`. */
export function homeOf(call: Pick<Call, "flags" | "env">): Paths {
  const asked = call.flags.text("home");
  return pathsIn(asked === undefined ? kinfoldHome(call.env) : resolve(asked));
}

/** Returns the token from the environment, else from the home; null if there is none yet. */
export function readToken(paths: Paths, env: NodeJS.ProcessEnv): string | null {
  const given = env["KINFOLD_TOKEN"]?.trim();
  if (given) return given;
  try {
    return readFileSync(paths.token, "utf8").trim() || null;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return null;
    throw unreadable(paths, code);
  }
}

function unreadable(paths: Paths, code: string | undefined): Failure {
  const owner = ownerOf(paths.token);
  return noDaemon(
    "token_unreadable",
    `The token at ${paths.token} cannot be read (${code ?? "unknown error"}).`,
    [
      owner === null
        ? `Check its permissions: ls -l ${paths.token}`
        : `It belongs to uid ${owner}; run this as that user,`,
      "or set KINFOLD_TOKEN, or use a home of your own: KINFOLD_HOME=…",
    ],
  );
}

function ownerOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.uid ?? null;
}

export function ownVersion(): string {
  const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  return String((JSON.parse(text) as { version?: unknown }).version ?? "unknown");
}
