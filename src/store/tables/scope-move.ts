import type { EntryIndex } from "../search/entry-index.ts";
import { number, reading, type RecordOf, readerOf, valuesOf, word } from "../column.ts";
import { sql, type Query } from "../sql.ts";

/** A session that is still in the scope `default`, because it was created before scopes were folders. */
const SCOPE_MOVE = {
  sessionId: word(),
  rootId: word(),
  /** The folder of its tree's root, which determines the scope. */
  cwd: word(),
};

export interface ScopeMoveReads {
  next(node: string, limit: number): Promise<RecordOf<typeof SCOPE_MOVE>[]>;
}

export interface ScopeMoveWrites {
  /**
   * Moves a session to the scope, then at most `limit` of its entries in the index. Returns true when nothing
   * is left to move. Each call continues where the last one stopped.
   */
  step(sessionId: string, scope: string, limit: number): Promise<boolean>;
}

const moveIn = readerOf(SCOPE_MOVE);

export function scopeMoveReads(q: Query): ScopeMoveReads {
  return {
    next: (node, limit) =>
      reading(q, moveIn).many(sql`SELECT m.session_id, m.root_id, coalesce(r.cwd, s.cwd)
        FROM scope_moves m JOIN sessions s ON s.id = m.session_id LEFT JOIN sessions r ON r.id = m.root_id
        WHERE s.node = ${node} ORDER BY m.session_id LIMIT ${limit}`),
  };
}

export function scopeMoveWrites(q: Query, rootId: string, index: EntryIndex): ScopeMoveWrites {
  return {
    async step(sessionId, scope, limit) {
      const mine = sql`session_id = ${sessionId} AND root_id = ${rootId}`;
      const begun = await q.run(sql`UPDATE scope_moves SET end_idx =
          (SELECT entry_count FROM sessions WHERE id = ${sessionId}) WHERE ${mine} AND end_idx IS NULL`);
      if (begun > 0) {
        // A child that was created before its parent moved has inherited the old scope, so it must move too.
        await q.run(sql`INSERT INTO scope_moves (root_id, session_id, next_idx)
          SELECT root_id, id, 0 FROM sessions WHERE root_id = ${rootId} AND scope = 'default'
          ON CONFLICT (session_id) DO NOTHING`);
        await q.run(
          sql`UPDATE sessions SET scope = ${scope} WHERE id = ${sessionId} AND root_id = ${rootId}`,
        );
      }
      const row = await q.get(sql`SELECT m.next_idx, m.end_idx, s.agent, s.scope FROM scope_moves m
        JOIN sessions s ON s.id = m.session_id WHERE m.session_id = ${sessionId} AND m.root_id = ${rootId}`);
      if (row === null) return true;
      const [from, end, agent, moved] = valuesOf(row, number(), number(), word(), word());
      const to = Math.min(from + limit, end);
      await index.replace(q, { sessionId, from, to }, { agent, scope: moved });
      if (to < end) {
        await q.run(sql`UPDATE scope_moves SET next_idx = ${to} WHERE ${mine}`);
        return false;
      }
      await q.run(sql`DELETE FROM scope_moves WHERE ${mine}`);
      return true;
    },
  };
}
