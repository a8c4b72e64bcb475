import type { FeedReads, NewEvent, TreeWrites } from "../port/store.ts";
import { EVENT, type EventRecord, TREE, type TreeRecord } from "../port/record.ts";
import { firstOf, maybe, number, reading, valueOf } from "../column.ts";
import { inBatches, type Query, sql } from "../sql.ts";
import { table } from "../table.ts";

export const events = table<EventRecord>("events", EVENT);
export const trees = table<TreeRecord>("trees", TREE);
const changed = trees.pick("rootId", "seq");

/** The caller passes `point`, because the two databases implement it differently. */
export function eventReads(q: Query, point: FeedReads["point"]): FeedReads {
  return {
    point,
    treesSince: (xmin) =>
      reading(q, changed.record).many(sql`SELECT ${changed.columns} FROM trees
        WHERE xid >= ${xmin} ORDER BY xid, root_id`),
    ofTree: (rootId, after, limit) =>
      reading(q, events.record).many(sql`SELECT ${events.columns} FROM events
        WHERE root_id = ${rootId} AND seq > ${after} ORDER BY seq LIMIT ${limit}`),
    firstSince(rootId, xmin) {
      const first = sql`SELECT min(seq) FROM events WHERE root_id = ${rootId} AND xid >= ${xmin}`;
      return firstOf(q, first, maybe(number()));
    },
  };
}

/**
 * Numbers and writes the events, as the last statements of a write. The tree's row is locked, so the numbers
 * have no gaps and commit in order.
 */
export async function writeEvents(
  q: Query,
  tree: { rootId: string; xid: number },
  added: readonly NewEvent[],
): Promise<void> {
  const { rootId, xid } = tree;
  const counted = await q.get(sql`UPDATE trees SET seq = seq + ${added.length}, xid = ${xid}
    WHERE root_id = ${rootId} RETURNING seq`);
  if (counted === null) throw new Error(`tree ${rootId} has no row`);
  const first = valueOf(counted[0], number()) - added.length + 1;
  const records = added.map((event, i) => ({ text: null, ...event, rootId, xid, seq: first + i }));
  for (const some of inBatches(records)) await q.run(events.insert(some));
}

export function treeReads(q: Query): { byId(rootId: string): Promise<TreeRecord | null> } {
  return {
    byId: (rootId) =>
      reading(q, trees.record).one(sql`SELECT ${trees.columns} FROM trees WHERE root_id = ${rootId}`),
  };
}

export function treeWrites(q: Query, rootId: string): TreeWrites {
  return {
    ...treeReads(q),
    async countSpawn() {
      const row = await q.get(sql`UPDATE trees SET spawn_count = spawn_count + 1
        WHERE root_id = ${rootId} RETURNING spawn_count`);
      if (row === null) throw new Error(`tree ${rootId} has no row`);
      return valueOf(row[0], number());
    },
  };
}
