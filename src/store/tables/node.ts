import type { Agent } from "../../contract/index.ts";
import { NODE, type NodeRecord } from "../port/record.ts";
import { reading } from "../column.ts";
import { sql, type Query } from "../sql.ts";
import { table } from "../table.ts";

export const nodes = table<NodeRecord>("nodes", NODE);

export function nodeReads(q: Query): { byName(node: string): Promise<NodeRecord | null> } {
  return {
    byName: (node) =>
      reading(q, nodes.record).one(sql`SELECT ${nodes.columns} FROM nodes WHERE node = ${node}`),
  };
}

export function nodeWrites(q: Query) {
  return {
    /** Creates the node's row with an empty boot id, unless the row exists. */
    async make(node: string): Promise<void> {
      await q.run(sql`INSERT INTO nodes (node, boot, agents) VALUES (${node}, '', '[]')
        ON CONFLICT (node) DO NOTHING`);
    },
    async publish({ node, boot }: { node: string; boot: string }, agents: readonly Agent[]): Promise<void> {
      await q.run(sql`UPDATE nodes SET agents = ${JSON.stringify(agents)}
        WHERE node = ${node} AND boot = ${boot}`);
    },
  };
}
