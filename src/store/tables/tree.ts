import type { TreeWrites } from "../port/store.ts";
import type { TreeRecord } from "../port/record.ts";
import { number, valueOf, word } from "../column.ts";
import { sql, type Query } from "../sql.ts";
import { table } from "../table.ts";

export const trees = table<TreeRecord>("trees", {
  rootId: word(),
  seq: number(),
  xid: number(),
  spawnCount: number(),
  prunedXid: number(),
});

export function treeReads(q: Query): { byId(rootId: string): Promise<TreeRecord | null> } {
  return {
    async byId(rootId) {
      const row = await q.get(sql`SELECT ${trees.columns} FROM trees WHERE root_id = ${rootId}`);
      return row === null ? null : trees.record(row);
    },
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
