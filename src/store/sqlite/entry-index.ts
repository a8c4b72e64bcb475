import { entriesWithDoc } from "../entry.ts";
import { indexedWords, type EntryIndex } from "../entry-index.ts";
import type { EntryRecord } from "../record.ts";
import { sql, type Query } from "../sql.ts";

/** Rows in one statement: few enough for its text to be kept and its parameters to be allowed. */
const ROWS_MAX = 32;
/** Entries of one second have this many numbers; those that find them taken go into the next second's. */
export const DOCS_PER_SECOND = 256;

/** An entry and its row of the index are one write; `grown` is told, so that the index is tended later. */
export function sqliteEntryIndex(grown: () => void): EntryIndex {
  return {
    async insert(q, records, session) {
      const docs = await docsFor(q, records);
      for (let at = 0; at < records.length; at += ROWS_MAX) {
        const rows = records.slice(at, at + ROWS_MAX).map((record, i) => ({ ...record, doc: docs[at + i]! }));
        await q.run(entriesWithDoc.insert(rows));
      }
      for (const [i, record] of records.entries()) {
        await addToIndex(q, docs[i]!, indexedWords(record, session));
      }
      grown();
    },
  };
}

export async function addToIndex(q: Query, doc: number, words: readonly string[]): Promise<void> {
  await q.run(sql`INSERT INTO entry_index (rowid, words) VALUES (${doc}, ${words.join(" ")})`);
}

/** The first number of a second. */
export function firstDocOf(at: number): number {
  return Math.max(0, Math.floor(at / 1_000)) * DOCS_PER_SECOND;
}

/** A free number for each, in the order of time; it is found under the lane's lock. */
export async function docsFor(q: Query, records: readonly Pick<EntryRecord, "at">[]): Promise<number[]> {
  const last = new Map<number, number>();
  const docs: number[] = [];
  for (const { at } of records) {
    let first = firstDocOf(at);
    for (;;) {
      const before = last.get(first) ?? (await lastDocFrom(q, first));
      if (before < first + DOCS_PER_SECOND - 1) {
        last.set(first, before + 1);
        docs.push(before + 1);
        break;
      }
      first += DOCS_PER_SECOND;
    }
  }
  return docs;
}

async function lastDocFrom(q: Query, first: number): Promise<number> {
  const row = await q.get(
    sql`SELECT max(doc) FROM entries WHERE doc >= ${first} AND doc < ${first + DOCS_PER_SECOND}`,
  );
  return (row?.[0] as number | null) ?? first - 1;
}
