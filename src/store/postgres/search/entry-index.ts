import { entries, entriesWithWords } from "../../tables/entry.ts";
import { indexedWords } from "../../../search/expression.ts";
import type { EntryIndex } from "../../search/entry-index.ts";
import { sql } from "../../sql.ts";

/** Rows in one statement: few enough for its text to be kept and its parameters to be allowed. */
const ROWS_MAX = 32;

export const postgresEntryIndex: EntryIndex = {
  async insert(q, records, session) {
    for (let at = 0; at < records.length; at += ROWS_MAX) {
      const rows = records
        .slice(at, at + ROWS_MAX)
        .map((record) => ({ ...record, words: vectorOf(indexedWords(record, session)) }));
      await q.run(entriesWithWords.insert(rows));
    }
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

/** PostgreSQL keeps so many places of one word, and forgets those after them. */
const PLACES_MAX = 255;
/** Leads a word that has more places than are kept: where it stands beside others only its entry can tell. */
export const MANY = "\ue008";

/** Words with their places, as PostgreSQL reads them. None holds a quote or a backslash. */
export function vectorOf(words: readonly string[]): string {
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
