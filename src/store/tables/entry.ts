import type { EntryIndex } from "../search/entry-index.ts";
import type { EntryReads, EntryWrites } from "../port/store.ts";
import { ENTRY, type EntryRecord } from "../port/record.ts";
import { heldJson, number, reading, valuesOf, word } from "../column.ts";
import { list, sql, type Query } from "../sql.ts";
import { table } from "../table.ts";

const OPTIONS = { named: { index: "idx" } } as const;

export const entries = table<EntryRecord>("entries", ENTRY, OPTIONS);
/** Entries are already redacted when they are indexed, so their body is not redacted again. */
const INDEXED = { ...ENTRY, body: heldJson<EntryRecord["body"]>() };
/** Each database adds its own search column: SQLite the number `doc`, PostgreSQL the text `words`. */
export const entriesWithDoc = table<EntryRecord & { doc: number }>(
  "entries",
  { ...INDEXED, doc: number() },
  OPTIONS,
);
export const entriesWithWords = table<EntryRecord & { words: string }>(
  "entries",
  { ...INDEXED, words: word() },
  OPTIONS,
);

export function entryReads(q: Query): EntryReads {
  const { columns } = entries;
  const { many } = reading(q, entries.record);
  return {
    async tail(sessionId, { kinds, after, before, bytesMax, entryBytesMax, limit }) {
      const among = sql`session_id = ${sessionId} AND kind IN ${list(kinds)}`;
      // Adds up the sizes first, so that only bodies that fit into `bytesMax` are read.
      return many(sql`SELECT ${columns} FROM entries WHERE ${among} AND idx < ${before} AND idx >=
        (SELECT min(idx) FROM
          (SELECT idx, bytes, sum(bytes) OVER (ORDER BY idx DESC) AS so_far FROM
            (SELECT idx, CASE WHEN octet_length(body) < ${entryBytesMax} THEN octet_length(body)
                ELSE ${entryBytesMax} END AS bytes FROM entries
              WHERE ${among} AND idx > ${after} AND idx < ${before} ORDER BY idx DESC LIMIT ${limit}) newest) summed
          WHERE so_far <= ${bytesMax} OR so_far = bytes)
        ORDER BY idx`);
    },
    async page(sessionId, { before, after, limit, bytesMax }) {
      const below = before === undefined ? sql`` : sql` AND idx < ${before}`;
      const above = after === undefined ? sql`` : sql` AND idx > ${after}`;
      const order = after === undefined ? sql`idx DESC` : sql`idx`;
      const among = sql`session_id = ${sessionId}${above}${below}`;
      // Adds up the sizes first, so that only bodies that fit into `bytesMax` are read.
      const fits =
        bytesMax === undefined
          ? sql``
          : sql` AND idx IN (SELECT idx FROM
          (SELECT idx, bytes, sum(bytes) OVER (ORDER BY ${order}) AS so_far FROM
            (SELECT idx, octet_length(body) AS bytes FROM entries
              WHERE ${among} ORDER BY ${order} LIMIT ${limit}) first) summed
          WHERE so_far <= ${bytesMax} OR so_far = bytes)`;
      const rows = await many(sql`SELECT ${columns} FROM entries
        WHERE ${among}${fits} ORDER BY ${order} LIMIT ${limit}`);
      return after === undefined ? rows.reverse() : rows;
    },
  };
}

export function entryWrites(q: Query, rootId: string, index: EntryIndex): EntryWrites {
  return {
    async append(sessionId, added) {
      if (added.length === 0) return [];
      const counted = await q.get(sql`UPDATE sessions SET entry_count = entry_count + ${added.length}
        WHERE id = ${sessionId} AND root_id = ${rootId} RETURNING entry_count, agent, scope`);
      if (counted === null) throw new Error(`there is no session ${sessionId} in tree ${rootId}`);
      const [count, agent, scope] = valuesOf(counted, number(), word(), word());
      const first = count - added.length;
      // Redacted first, so that the index and the result hold exactly what is stored.
      const records = added.map(({ isClean, ...entry }, i) => {
        const record = { ...entry, rootId, sessionId, index: first + i };
        return isClean === true ? record : entries.clean(record);
      });
      await index.insert(q, records, { agent, scope });
      return records;
    },
  };
}
