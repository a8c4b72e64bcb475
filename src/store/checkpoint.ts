import type { CheckpointReads } from "./port.ts";
import type { CheckpointRecord } from "./record.ts";
import { sql, type Query } from "./sql.ts";
import { table } from "./table.ts";

export const checkpoints = table<CheckpointRecord>("checkpoints", {
  id: "plain",
  rootId: "plain",
  sessionId: "plain",
  turnId: "plain",
  kind: "plain",
  summary: "text",
  entities: "json",
  constraints: "json",
  entryIndex: "plain",
  at: "plain",
});

export function checkpointReads(q: Query): CheckpointReads {
  return {
    async ofSession(sessionId) {
      const rows = await q.all(sql`SELECT ${checkpoints.columns} FROM checkpoints
        WHERE session_id = ${sessionId} ORDER BY entry_index, at, id`);
      return rows.map(checkpoints.record);
    },
  };
}

export function checkpointWrites(q: Query, rootId: string): { add(record: CheckpointRecord): Promise<void> } {
  return {
    async add(record) {
      await q.run(checkpoints.insert([{ ...record, rootId }]));
    },
  };
}
