import { nodeReads, nodeWrites } from "../tables/node.ts";
import type { Nodes } from "../port/store.ts";
import { firstOf, word } from "../column.ts";
import { sql, type Query } from "../sql.ts";

/** The lock on the file is the lease. The process that holds the lock is the node until the process ends. */
export function openNodes(at: {
  node: string;
  boot: string;
  reader: Query;
  plain: <T>(work: (q: Query) => Promise<T>) => Promise<T>;
}): Nodes {
  const { node, boot, reader, plain } = at;
  return {
    ...nodeReads(reader),
    register: (agents) =>
      plain(async (q) => {
        await nodeWrites(q).make(node);
        const previous = await firstOf(q, sql`SELECT boot FROM nodes WHERE node = ${node}`, word());
        await q.run(sql`UPDATE nodes SET boot = ${boot}, agents = ${JSON.stringify(agents)}, alive_until = NULL
          WHERE node = ${node}`);
        return { previousBoot: previous === "" || previous === boot ? null : previous };
      }),
    publish: (agents) => plain((q) => nodeWrites(q).publish({ node, boot }, agents)),
    renew: async () => true,
  };
}
