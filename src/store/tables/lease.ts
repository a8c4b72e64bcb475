import type { LeaseReads, LeaseWrites } from "../port/store.ts";
import { LEASE, type LeaseRecord } from "../port/record.ts";
import { reading } from "../column.ts";
import { sql, type Query } from "../sql.ts";
import { table } from "../table.ts";

export const leases = table<LeaseRecord>("leases", LEASE, { fixed: ["sessionId", "rootId", "fence"] });

export function leaseReads(q: Query): LeaseReads {
  const { columns } = leases;
  const { one, many } = reading(q, leases.record);
  return {
    bySession: (sessionId) => one(sql`SELECT ${columns} FROM leases WHERE session_id = ${sessionId}`),
    ofNode: (node) =>
      many(sql`SELECT ${columns} FROM leases WHERE node = ${node} ORDER BY opened_at, session_id`),
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
