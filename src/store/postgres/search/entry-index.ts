import { entries, entriesWithWords } from "../../tables/entry.ts";
import { indexedWords } from "../../../search/expression.ts";
import type { EntryIndex } from "../../search/entry-index.ts";
import type { UpkeepSteps } from "../../search/upkeep.ts";
import { indexedRow, indexedRows } from "../../search/row.ts";
import { inBatches, sql, type Query } from "../../sql.ts";
import type { EntryRecord } from "../../port/record.ts";

export const postgresEntryIndex: EntryIndex = {
  async insert(q, records, session) {
    const withWords = (record: EntryRecord) => ({
      ...record,
      words: vectorOf(indexedWords(record, session)),
    });
    for (const some of inBatches(records)) await q.run(entriesWithWords.insert(some.map(withWords)));
  },
  async replace(q, { sessionId, from, to }, session) {
    const rows = await q.all(sql`SELECT ${entries.columns} FROM entries
      WHERE session_id = ${sessionId} AND idx >= ${from} AND idx < ${to} AND words IS NOT NULL`);
    for (const row of rows) {
      const record = entries.record(row);
      const words = vectorOf(indexedWords(record, session));
      await q.run(sql`UPDATE entries SET words = ${words}::text::tsvector
        WHERE session_id = ${sessionId} AND idx = ${record.index}`);
    }
  },
};

/** PostgreSQL merges its index without help, so `merge` does nothing. */
export const upkeepSteps: UpkeepSteps = {
  index: indexSome,
  indexMs: 100,
  isShared: true,
  merge: async () => false,
};

/** Indexes entries without `words`, newest first. Returns their number. Other nodes may index them too. */
async function indexSome(q: Query, limit: number): Promise<number> {
  const rows = await q.all(sql`${indexedRows} WHERE e.words IS NULL ORDER BY e.at DESC LIMIT ${limit}`);
  for (const { record, session } of rows.map(indexedRow)) {
    const words = vectorOf(indexedWords(record, session));
    await q.run(sql`UPDATE entries SET words = ${words}::text::tsvector
      WHERE session_id = ${record.sessionId} AND idx = ${record.index} AND words IS NULL`);
  }
  return rows.length;
}

/** PostgreSQL keeps at most this many positions of one word in an entry and drops the rest. */
const PLACES_MAX = 255;
/** Marks a word with dropped positions. A phrase with it must be looked for in the entry itself. */
export const MANY = "\ue008";

/** Formats words with their positions as a tsvector. No word contains a quote or a backslash. */
function vectorOf(words: readonly string[]): string {
  const places = new Map<string, number[]>();
  for (const [at, word] of words.entries()) {
    const known = places.get(word);
    if (known === undefined) places.set(word, [at + 1]);
    else known.push(at + 1);
  }
  return [...places]
    .map(([word, at]) =>
      at.length <= PLACES_MAX
        ? `'${word}':${at.join(",")}`
        : `'${word}':${at.slice(0, PLACES_MAX).join(",")} '${MANY}${word}'`,
    )
    .join(" ");
}
