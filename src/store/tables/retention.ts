import { PRUNABLE, type RetentionReads, type RetentionWrites } from "../port/retention.ts";
import { flag, number, numberOf, only, reading, readerOf, valuesOf, word } from "../column.ts";
import { raw, sql, type Query, type Sql } from "../sql.ts";
import { events } from "./event.ts";

export function retentionReads(q: Query): RetentionReads {
  return {
    scopes: () => reading(q, only(word())).many(sql`SELECT DISTINCT scope FROM sessions ORDER BY scope`),
    sessions(scope, { by, after, limit }) {
      const time = by === "createdAt" ? sql`s.created_at` : sql`s.last_activity_at`;
      return reading(q, prunable).many(sql`SELECT s.id, s.root_id, s.created_at, s.last_activity_at,
          s.entry_count, s.round_open,
          coalesce(r.measured_to, 0), coalesce(r.bytes, 0)
        FROM sessions s LEFT JOIN retention r ON r.session_id = s.id
        WHERE s.scope = ${scope} AND (${time}, s.id) > (${after?.[by] ?? -1}, ${after?.id ?? ""})
          AND coalesce(r.entries_from, 0) < s.entry_count
        ORDER BY ${time}, s.id LIMIT ${limit}`);
    },
    keptFrom: (sessionId) =>
      numberOf(q, sql`SELECT entries_from FROM retention WHERE session_id = ${sessionId}`),
    // The limit applies before the idle test, so that a page is quick even if few trees are idle.
    trees: ({ idleSince, after, limit }) =>
      reading(q, idleTree).many(sql`SELECT t.root_id,
          CASE WHEN ${isIdle(raw("t.root_id"), idleSince)} THEN 1 ELSE 0 END
        FROM (SELECT root_id FROM trees WHERE root_id > ${after} ORDER BY root_id LIMIT ${limit}) t
        ORDER BY t.root_id`),
  };
}

/** True for a tree that has events, no open round, and no session that has worked at or after `since`. */
function isIdle(rootId: Sql, since: number): Sql {
  return sql`(EXISTS (SELECT 1 FROM events e WHERE e.root_id = ${rootId}) AND NOT EXISTS
    (SELECT 1 FROM sessions s WHERE s.root_id = ${rootId}
      AND (s.last_activity_at >= ${since} OR (s.round_open = 1 AND s.ended_at IS NULL))))`;
}

const idleTree = readerOf({ rootId: word(), isIdle: flag() });
const prunable = readerOf(PRUNABLE);
const sized = readerOf({ idx: number(), at: number(), bytes: number() });
const numbered = events.pick("seq", "xid", "at");

export function retentionWrites(q: Query, rootId: string): RetentionWrites {
  const open = (sessionId: string): Promise<number> =>
    q.run(sql`INSERT INTO retention (session_id, root_id, entries_from, measured_to, bytes)
      SELECT id, root_id, 0, 0, 0 FROM sessions WHERE id = ${sessionId} AND root_id = ${rootId}
      ON CONFLICT (session_id) DO NOTHING`);
  const isClosed = sql`(SELECT round_open FROM sessions WHERE id = session_id) = 0`;
  return {
    async measure(sessionId, limit) {
      await open(sessionId);
      const row =
        await q.get(sql`SELECT count(*), coalesce(sum(octet_length(body)), 0), coalesce(max(idx), -1) FROM (
          SELECT idx, body FROM entries WHERE session_id = ${sessionId}
            AND idx >= (SELECT measured_to FROM retention WHERE session_id = ${sessionId})
          ORDER BY idx LIMIT ${limit}) AS unmeasured`);
      const [count, bytes, last] = valuesOf(row ?? [0, 0, -1], number(), number(), number());
      if (count === 0) return { bytes: 0, isDone: true };
      await q.run(sql`UPDATE retention SET bytes = bytes + ${bytes}, measured_to = ${last + 1}
        WHERE session_id = ${sessionId} AND root_id = ${rootId}`);
      return { bytes, isDone: count < limit };
    },
    async prune(sessionId, { olderThan, bytesMin, limit }) {
      await open(sessionId);
      const oldest = await reading(q, sized).many(sql`SELECT idx, at, octet_length(body) FROM entries
        WHERE session_id = ${sessionId} AND kind <> 'inherited' ORDER BY idx LIMIT ${limit}`);
      let sum = 0;
      const kept = oldest.findIndex(({ at, bytes }) => {
        if ((olderThan !== null && at >= olderThan) || (bytesMin !== null && sum >= bytesMin)) return true;
        sum += bytes;
        return false;
      });
      const gone = kept === -1 ? oldest : oldest.slice(0, kept);
      const last = gone.at(-1);
      if (last === undefined) return { removed: 0, bytes: 0, isDone: true };
      // If a round has opened since the caller chose this session, nothing is removed, because the round's
      // agent may still need the entries.
      const isMarked = await q.run(sql`UPDATE retention SET entries_from = ${last.idx + 1}
        WHERE session_id = ${sessionId} AND root_id = ${rootId} AND ${isClosed}`);
      if (isMarked === 0) return { removed: 0, bytes: 0, isDone: true };
      const measured = sql`SELECT measured_to FROM retention WHERE session_id = ${sessionId}`;
      const measuredTo = await numberOf(q, measured);
      const bytes = gone.filter(({ idx }) => idx < measuredTo).reduce((sum, each) => sum + each.bytes, 0);
      await q.run(sql`UPDATE retention SET bytes = bytes - ${bytes},
          measured_to = CASE WHEN measured_to > ${last.idx} THEN measured_to ELSE ${last.idx + 1} END
        WHERE session_id = ${sessionId}`);
      await q.run(sql`DELETE FROM entries WHERE session_id = ${sessionId} AND idx <= ${last.idx}
        AND kind <> 'inherited'`);
      return { removed: gone.length, bytes, isDone: gone.length < limit };
    },
    pruneEvents: (what) => pruneEvents(q, rootId, what),
  };
}

/** Runs under the tree's lock, so no round can open in the meantime. */
async function pruneEvents(
  q: Query,
  rootId: string,
  { idleSince, xidBelow, limit }: Parameters<RetentionWrites["pruneEvents"]>[0],
): ReturnType<RetentionWrites["pruneEvents"]> {
  const oldest = await reading(q, numbered.record).many(sql`SELECT ${numbered.columns} FROM events
    WHERE root_id = ${rootId} AND ${isIdle(sql`${rootId}`, idleSince)} ORDER BY seq LIMIT ${limit}`);
  const kept = oldest.findIndex(({ xid, at }) => at >= idleSince || xid >= xidBelow);
  const gone = kept === -1 ? oldest : oldest.slice(0, kept);
  const last = gone.at(-1);
  if (last === undefined) return { removed: 0, isDone: true };
  // The newest of the removed events need not have the highest transaction number: on PostgreSQL a later
  // event may have a lower one.
  const xid = Math.max(...gone.map((event) => event.xid));
  await q.run(sql`UPDATE trees SET pruned_xid = ${xid} WHERE root_id = ${rootId} AND pruned_xid < ${xid}`);
  await q.run(sql`DELETE FROM events WHERE root_id = ${rootId} AND seq <= ${last.seq}`);
  return { removed: gone.length, isDone: gone.length < limit };
}
