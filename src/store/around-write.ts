import { Refusal } from "../contract/refusal.ts";
import type { ProcessFence, Stale, Store, Tx } from "./port/store.ts";
import { type Query, sql } from "./sql.ts";
import { LongTexts, searched, writeRedactions } from "../secrets/redact-long.ts";
import { takeSteps } from "../system/steps.ts";

/** Builds both overloads of `Store.write` from one function that takes an optional fence. */
export function writeOver(
  run: <T>(rootId: string, by: ProcessFence | null, work: (tx: Tx) => Promise<T>) => Promise<T | Stale>,
): Store["write"] {
  return <T>(
    rootId: string,
    by: ProcessFence | ((tx: Tx) => Promise<T>),
    work?: (tx: Tx) => Promise<T>,
  ): Promise<T> => {
    const [fence, closure] = typeof by === "function" ? [null, by] : [by, work];
    if (closure === undefined) throw new TypeError("a write needs a closure");
    // Only a write with a fence can return `STALE`, so only that overload has `STALE` in its type.
    return run(rootId, fence, closure) as Promise<T>;
  };
}

export const FOREIGN_AWAIT =
  "A write awaited something other than its own transaction. It was rolled back; this is a bug.";

export function closing(done: "changed" | "searched"): Refusal {
  return new Refusal("shutting_down", `The store is closing; nothing was ${done}.`);
}

/** Must be called under the tree's lock; otherwise the fence may change between this check and the write. */
export async function isStale(q: Query, rootId: string, by: ProcessFence): Promise<boolean> {
  const holder = sql`SELECT 1 FROM sessions
    WHERE id = ${by.session} AND root_id = ${rootId} AND fence = ${by.fence}`;
  return (await q.get(holder)) === null;
}

/** Maximum number of tries. The last try redacts long texts inside the write instead of running it again. */
const TRIES_MAX = 8;

/**
 * Runs a write and redacts its long texts. A write that meets long texts that are not redacted yet throws
 * `LongTexts` and changes nothing. The texts are then redacted step by step, and the write runs again from
 * the beginning. The write must call `begin` when its closure begins.
 */
export async function redactWrites<T>(write: (begin: () => void) => Promise<T>): Promise<T> {
  const kept = new Set<string>();
  try {
    for (let tries = 1; ; tries += 1) {
      const isLimited = tries < TRIES_MAX;
      writeRedactions.open(isLimited);
      try {
        return await write(() => writeRedactions.begin());
      } catch (error) {
        if (!(error instanceof LongTexts)) throw error;
        await keep(error.texts, kept);
      } finally {
        writeRedactions.close(isLimited);
      }
    }
  } finally {
    for (const text of kept) writeRedactions.release(text);
  }
}

async function keep(texts: readonly string[], kept: Set<string>): Promise<void> {
  for (const [text, shown] of await takeSteps(searched(texts))) {
    if (kept.has(text)) continue;
    kept.add(text);
    writeRedactions.keep(text, shown);
  }
}
