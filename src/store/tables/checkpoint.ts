import type { CheckpointReads, CheckpointWrites } from "../port/store.ts";
import { CHECKPOINT, type CheckpointRecord } from "../port/record.ts";
import { reading } from "../column.ts";
import { sql, type Query, type Sql } from "../sql.ts";
import { table } from "../table.ts";

export const checkpoints = table<CheckpointRecord>("checkpoints", CHECKPOINT);

const constraints = checkpoints.pick("sessionId", "constraints");

export function checkpointReads(q: Query): CheckpointReads {
  const { many } = reading(q, checkpoints.record);
  return {
    ofSession: (sessionId) =>
      many(sql`SELECT ${checkpoints.columns} FROM checkpoints
        WHERE session_id = ${sessionId} ORDER BY entry_index, at, id`),
    async latest(sessionId) {
      const found = await many(sql`SELECT ${checkpoints.columns} FROM checkpoints
        WHERE id IN (${newest(sessionId, "explicit")}, ${newest(sessionId, "compaction")}, ${newest(sessionId, "automatic")})`);
      const of = (kind: CheckpointRecord["kind"]) => found.find((each) => each.kind === kind) ?? null;
      return { explicit: of("explicit"), compaction: of("compaction"), automatic: of("automatic") };
    },
    constraintsAbove: (sessionId) =>
      reading(q, constraints.record).many(sql`WITH RECURSIVE up (id, parent_id, depth) AS (
          SELECT id, parent_id, depth FROM sessions
            WHERE id = (SELECT parent_id FROM sessions WHERE id = ${sessionId})
          UNION ALL
          SELECT s.id, s.parent_id, s.depth FROM sessions s JOIN up ON s.id = up.parent_id)
        SELECT up.id, c.constraints FROM up JOIN checkpoints c ON c.id = (SELECT id FROM checkpoints
          WHERE session_id = up.id AND kind = 'explicit' ORDER BY entry_index DESC, at DESC, id DESC LIMIT 1)
        ORDER BY up.depth`),
  };
}

function newest(sessionId: string, kind: CheckpointRecord["kind"]): Sql {
  return sql`(SELECT id FROM checkpoints WHERE session_id = ${sessionId} AND kind = ${kind}
    ORDER BY entry_index DESC, at DESC, id DESC LIMIT 1)`;
}

export function checkpointWrites(q: Query, rootId: string): CheckpointWrites {
  return {
    async add(record) {
      await q.run(checkpoints.insert([{ ...record, rootId }]));
    },
    async replaceAutomatic(record) {
      await q.run(sql`DELETE FROM checkpoints
        WHERE session_id = ${record.sessionId} AND kind = 'automatic' AND root_id = ${rootId}`);
      await q.run(checkpoints.insert([{ ...record, kind: "automatic", rootId }]));
    },
  };
}
