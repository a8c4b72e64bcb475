import type { EntryReads, EntryWrites } from "./port.ts";
import type { EntryRecord } from "./record.ts";
import { sql, type Query, type Sql } from "./sql.ts";
import { within } from "./session.ts";
import { table } from "./table.ts";

export const entries = table<EntryRecord>(
  "entries",
  {
    rootId: "plain",
    sessionId: "plain",
    index: "plain",
    turnId: "plain",
    author: "plain",
    kind: "plain",
    body: "json",
    isSubagent: "bool",
    at: "plain",
  },
  { named: { index: "idx" } },
);

export function entryReads(q: Query): EntryReads {
  const { columns } = entries;
  const many = async (statement: Sql) => (await q.all(statement)).map(entries.record);
  return {
    async find({ words, sessionId, visible, offset, limit }) {
      const inSession = sessionId === undefined ? sql`` : sql` AND e.session_id = ${sessionId}`;
      const inScope = sql` AND ${within(visible)}`;
      const holds = words.map((word) => sql` AND lower(e.body) LIKE ${like(word)} ESCAPE '!'`);
      return many(sql`SELECT ${entries.columnsOf("e")} FROM entries e JOIN sessions s ON s.id = e.session_id
        WHERE 1 = 1${inSession}${inScope}${joined(holds)}
        ORDER BY e.at DESC, e.session_id, e.idx DESC LIMIT ${limit} OFFSET ${offset}`);
    },
    async tail(sessionId, { after, bytesMax, limit }) {
      // Sizes first: a body that is not wanted is not read.
      const rows = await q.all(sql`SELECT ${columns} FROM entries WHERE session_id = ${sessionId} AND idx >=
        (SELECT min(idx) FROM
          (SELECT idx, bytes, sum(bytes) OVER (ORDER BY idx DESC) AS so_far FROM
            (SELECT idx, octet_length(body) AS bytes FROM entries
              WHERE session_id = ${sessionId} AND idx > ${after} ORDER BY idx DESC LIMIT ${limit}) newest) summed
          WHERE so_far <= ${bytesMax} OR so_far = bytes)
        ORDER BY idx`);
      const found = rows.map(entries.record);
      return { entries: found, hasEarlier: (found[0]?.index ?? after + 1) > after + 1 };
    },
    async page(sessionId, { before, after, limit }) {
      if (after !== undefined) {
        const upTo = before === undefined ? sql`` : sql` AND idx < ${before}`;
        return many(sql`SELECT ${columns} FROM entries
          WHERE session_id = ${sessionId} AND idx > ${after}${upTo} ORDER BY idx LIMIT ${limit}`);
      }
      const below = before === undefined ? sql`` : sql` AND idx < ${before}`;
      const tail = await many(sql`SELECT ${columns} FROM entries
        WHERE session_id = ${sessionId}${below} ORDER BY idx DESC LIMIT ${limit}`);
      return tail.reverse();
    },
  };
}

/** The body is JSON: a quote in it stands behind a backslash. */
function like(word: string): string {
  const escaped = JSON.stringify(word).slice(1, -1);
  return `%${escaped.replaceAll(/[!%_]/g, (found) => `!${found}`)}%`;
}

function joined(parts: readonly Sql[]): Sql {
  return { text: parts.map((part) => part.text).join(""), params: parts.flatMap((part) => part.params) };
}

/** Rows in one statement: few enough for its text to be kept and its parameters to be allowed. */
const ROWS_MAX = 32;

export function entryWrites(q: Query, rootId: string): EntryWrites {
  return {
    async append(sessionId, added) {
      if (added.length === 0) return [];
      const counted = await q.get(sql`UPDATE sessions SET entry_count = entry_count + ${added.length}
        WHERE id = ${sessionId} AND root_id = ${rootId} RETURNING entry_count`);
      if (counted === null) throw new Error(`there is no session ${sessionId} in tree ${rootId}`);
      const first = (counted[0] as number) - added.length;
      // Cleaned before anything else sees them: what is indexed or answered is what is kept.
      const records = added.map((entry, i) =>
        entries.clean({ ...entry, rootId, sessionId, index: first + i }),
      );
      for (let at = 0; at < records.length; at += ROWS_MAX) {
        await q.run(entries.insert(records.slice(at, at + ROWS_MAX)));
      }
      return records;
    },
  };
}
