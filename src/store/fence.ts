import type { ProcessFence, Stale, Store, Tx } from "./port/store.ts";
import { type Query, sql, type Sql } from "./sql.ts";

/** Both forms of `Store.write` over one that may be given a fence. */
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
    // Only a write with a fence is answered `STALE`, and its overload says so.
    return run(rootId, fence, closure) as Promise<T>;
  };
}

/** To be asked under the tree's lock. */
export async function isStale(q: Query, rootId: string, by: ProcessFence): Promise<boolean> {
  return (await q.get(holder(rootId, by))) === null;
}

function holder(rootId: string, { session, fence }: ProcessFence): Sql {
  return sql`SELECT 1 FROM sessions WHERE id = ${session} AND root_id = ${rootId} AND fence = ${fence}`;
}
