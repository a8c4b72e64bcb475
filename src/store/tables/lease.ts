import type { LeaseReads, LeaseWrites } from "../port/store.ts";
import type { LeaseRecord } from "../port/record.ts";
import { jsonList, maybe, number, word } from "../column.ts";
import { sql, type Query } from "../sql.ts";
import { table } from "../table.ts";

export const leases = table<LeaseRecord>(
  "leases",
  {
    id: word(),
    sessionId: word(),
    rootId: word(),
    node: word(),
    boot: word(),
    fence: number(),
    pid: maybe(number()),
    startTime: maybe(number()),
    descendants: jsonList(),
    openedAt: number(),
  },
  { fixed: ["sessionId", "rootId", "fence"] },
);

export function leaseReads(q: Query): LeaseReads {
  const { columns } = leases;
  return {
    async bySession(sessionId) {
      const row = await q.get(sql`SELECT ${columns} FROM leases WHERE session_id = ${sessionId}`);
      return row === null ? null : leases.record(row);
    },
    async ofNode(node) {
      const rows = await q.all(
        sql`SELECT ${columns} FROM leases WHERE node = ${node} ORDER BY opened_at, session_id`,
      );
      return rows.map(leases.record);
    },
  };
}

export function leaseWrites(q: Query, rootId: string): LeaseWrites {
  return {
    async put(lease) {
      const changed = await q.run(sql`${leases.insert([{ ...lease, rootId }])}
        ON CONFLICT (session_id) DO UPDATE SET
          id = excluded.id, node = excluded.node, boot = excluded.boot, fence = excluded.fence,
          pid = excluded.pid, start_time = excluded.start_time,
          descendants = excluded.descendants, opened_at = excluded.opened_at
        WHERE excluded.fence >= leases.fence`);
      if (changed !== 1) throw new Error(`a newer lease than fence ${lease.fence} holds ${lease.sessionId}`);
    },
    async patch(sessionId, fence, patch) {
      const set = leases.set(patch);
      if (set === null) throw new Error(`the lease of ${sessionId} cannot be patched: the patch is empty`);
      const changed = await q.run(sql`UPDATE leases SET ${set}
        WHERE session_id = ${sessionId} AND root_id = ${rootId} AND fence = ${fence}`);
      return changed === 1;
    },
    async remove(sessionId, fence) {
      const changed = await q.run(sql`DELETE FROM leases
        WHERE session_id = ${sessionId} AND root_id = ${rootId} AND fence = ${fence}`);
      return changed === 1;
    },
  };
}
