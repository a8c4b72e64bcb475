import type { TriggerReads, TriggerWrites } from "./port.ts";
import type { TriggerRecord } from "./record.ts";
import { sql, type Query } from "./sql.ts";
import { table } from "./table.ts";

export const triggers = table<TriggerRecord>(
  "triggers",
  {
    id: "plain",
    rootId: "plain",
    sessionId: "plain",
    toId: "plain",
    type: "plain",
    payload: "json",
    status: "plain",
    round: "plain",
    createdAt: "plain",
    closedAt: "plain",
  },
  { fixed: ["id", "rootId", "sessionId", "createdAt"] },
);

export function triggerReads(q: Query): TriggerReads {
  const { columns } = triggers;
  return {
    async byId(id) {
      const row = await q.get(sql`SELECT ${columns} FROM triggers WHERE id = ${id}`);
      return row === null ? null : triggers.record(row);
    },
    async ofSession(sessionId) {
      const rows = await q.all(sql`SELECT ${columns} FROM triggers
        WHERE session_id = ${sessionId} ORDER BY created_at, id`);
      return rows.map(triggers.record);
    },
    async openCount(sessionId) {
      const row = await q.get(sql`SELECT count(*) FROM triggers
        WHERE session_id = ${sessionId} AND status = 'open'
          AND type NOT IN ('session_complete', 'session_error')`);
      return row?.[0] as number;
    },
  };
}

export function triggerWrites(q: Query, rootId: string): TriggerWrites {
  return {
    async add(trigger) {
      await q.run(triggers.insert([{ ...trigger, rootId }]));
    },
    async close(id, patch) {
      const set = triggers.set(patch);
      if (set === null) throw new Error(`trigger ${id} is closed without saying how`);
      const changed = await q.run(sql`UPDATE triggers SET ${set}
        WHERE id = ${id} AND root_id = ${rootId} AND status = 'open'`);
      return changed === 1;
    },
  };
}
