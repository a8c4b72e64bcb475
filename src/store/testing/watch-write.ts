import { writeOver } from "../around-write.ts";
import type { Store } from "../port/store.ts";

export interface Watched {
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * Resolves to the content of the tree before and after the `nth` write from now. With `isLate`, another
 * process takes over the session after that write was requested and before it begins.
 */
export function watchWrite(
  store: Store,
  of: { rootId: string; sessionId: string; nth: number; isLate: boolean },
): Promise<Watched> {
  const { rootId, sessionId } = of;
  const { write: base } = store;
  const seen = Promise.withResolvers<Watched>();
  let count = 0;
  const write = writeOver(async (id, by, work) => {
    count += 1;
    const run = () => (by === null ? base(id, work) : base(id, by, work));
    if (count !== of.nth) return run();
    if (of.isLate) await base(rootId, (tx) => tx.sessions.patch(sessionId, { fence: REPLACED }));
    const before = await treeIn(store, rootId);
    const answer = await run();
    seen.resolve({ before, after: await treeIn(store, rootId) });
    return answer;
  });
  Object.assign(store, { write });
  return seen.promise;
}

/** A fence that is higher than any other fence in the tests. */
const REPLACED = 1_000;

/** Returns everything that the store holds about a tree. */
async function treeIn({ read, feed }: Store, rootId: string): Promise<unknown> {
  const sessions = await read.sessions.tree(rootId);
  const rows = sessions.map(async ({ id }) => ({
    turns: await read.turns.ofSession(id, { limit: 100 }),
    messages: await read.messages.ofSession(id, ["queued", "taken", "landed", "void"]),
    triggers: await read.triggers.ofSession(id),
    checkpoints: await read.checkpoints.ofSession(id),
    entries: await read.entries.page(id, { after: -1, limit: 100 }),
    lease: await read.leases.bySession(id),
  }));
  return { sessions, rows: await Promise.all(rows), events: await feed.ofTree(rootId, 0, 100) };
}
