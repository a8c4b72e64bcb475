import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../system/error.ts";

export interface RolloutFile {
  readonly path: string;
  readonly sessionId: string;
}

const NAME = /^rollout-.*-([\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12})\.jsonl$/;
const NEWEST_MAX = 20;
const TAIL_BYTES = 65_536;

/** Returns a few of the newest rollouts, by the time in their names. */
export function newestRollouts(folder: string): RolloutFile[] {
  return rolloutsIn(folder).take(NEWEST_MAX).toArray();
}

/** Lists all rollouts, newest day first. */
export function* rolloutsIn(folder: string): Generator<RolloutFile> {
  for (const year of foldersIn(folder)) {
    for (const month of foldersIn(join(folder, year))) {
      for (const day of foldersIn(join(folder, year, month))) {
        const place = join(folder, year, month, day);
        for (const name of readdirSync(place).sort().toReversed()) {
          const sessionId = NAME.exec(name)?.[1];
          if (sessionId !== undefined) yield { path: join(place, name), sessionId };
        }
      }
    }
  }
}

/** Returns the number and time of a rollout's last event; null if its end cannot be read. */
export function lastLineOf(path: string): { readonly seq: number; readonly at: number } | null {
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(file, bytes, 0, bytes.length, size - bytes.length);
    // Text after the last newline was cut off by a crash.
    const lines = bytes.toString("utf8").split("\n").slice(0, -1);
    for (const line of lines.toReversed()) {
      const found = /^\{"timestamp":"([^"]*)","seq":(\d+)/.exec(line);
      if (found !== null) return { seq: Number(found[2]), at: Date.parse(found[1] ?? "") };
    }
    return null;
  } finally {
    closeSync(file);
  }
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^\d+$/.test(name))
      .sort()
      .toReversed();
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
  }
}
