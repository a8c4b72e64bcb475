import { entries, entriesWithDoc } from "../../tables/entry.ts";
import { indexedWords } from "../../../search/expression.ts";
import type { EntryIndex } from "../../search/entry-index.ts";
import type { UpkeepSteps } from "../../search/upkeep.ts";
import type { EntryRecord } from "../../port/record.ts";
import { firstOf, maybe, number, valueOf } from "../../column.ts";
import { indexedRow, indexedRows } from "../../search/row.ts";
import { inBatches, sql, type Query } from "../../sql.ts";
import { mergeParts } from "./index-parts.ts";

/**
 * Each second of time has this many index numbers. When they are used up, further entries of that second get
 * numbers of a later second.
 */
export const DOCS_PER_SECOND = 256;

/** Writes entries together with their index rows, and calls `grown`, so that the index is merged later. */
export function sqliteEntryIndex(grown: () => void, full: FullSeconds): EntryIndex {
  return {
    async insert(q, records, session) {
      const docs = await docsFor(q, records, full);
      const rows = records.map((record, i) => ({ ...record, doc: docs[i]! }));
      for (const some of inBatches(rows)) await q.run(entriesWithDoc.insert(some));
      for (const [i, record] of records.entries()) {
        await addToIndex(q, docs[i]!, indexedWords(record, session));
      }
      grown();
    },
    async replace(q, { sessionId, from, to }, session) {
      const rows = await q.all(sql`SELECT doc, ${entries.columns} FROM entries
        WHERE session_id = ${sessionId} AND idx >= ${from} AND idx < ${to} AND doc IS NOT NULL ORDER BY doc`);
      for (const row of rows) {
        const doc = valueOf(row[0], number());
        // Uses `all`, because `run` also reads the last inserted row id, and FTS5 sets that to a value too
        // large for a JavaScript number.
        await q.all(sql`DELETE FROM entry_index WHERE rowid = ${doc}`);
        await addToIndex(q, doc, indexedWords(entries.record(row.slice(1)), session));
      }
      if (rows.length > 0) grown();
    },
  };
}

export function upkeepSteps(full: FullSeconds): UpkeepSteps {
  const index = (q: Query, limit: number): Promise<number> => indexSome(q, limit, full);
  return { index, indexMs: 4, isShared: false, merge: mergeParts };
}

/** Indexes entries without a number, those of the newest day first, and returns how many it indexed. */
async function indexSome(q: Query, limit: number, full: FullSeconds): Promise<number> {
  // This is exactly the order of the index `entries_unindexed`. For any other order SQLite would sort all
  // unindexed entries.
  const rows = await q.all(sql`${indexedRows}
    WHERE e.doc IS NULL ORDER BY e.at / 86400000 DESC, e.rowid LIMIT ${limit}`);
  const found = rows.map(indexedRow).toSorted((a, b) => a.record.at - b.record.at);
  const docs = await docsFor(
    q,
    found.map(({ record }) => record),
    full,
  );
  // FTS5 works best with ascending numbers within one write.
  const numbered = found.map((each, i) => ({ ...each, doc: docs[i]! })).toSorted((a, b) => a.doc - b.doc);
  for (const { record, session, doc } of numbered) {
    await q.run(sql`UPDATE entries SET doc = ${doc}
      WHERE session_id = ${record.sessionId} AND idx = ${record.index}`);
    await addToIndex(q, doc, indexedWords(record, session));
  }
  return rows.length;
}

async function addToIndex(q: Query, doc: number, words: readonly string[]): Promise<void> {
  await q.run(sql`INSERT INTO entry_index (rowid, words) VALUES (${doc}, ${words.join(" ")})`);
}

/** Returns the first index number that belongs to the second in which `at` lies. */
export function firstDocOf(at: number): number {
  return Math.max(0, Math.floor(at / 1_000)) * DOCS_PER_SECOND;
}

/**
 * Remembers which seconds have no free index number, and which later second to try instead. If a write fails,
 * the seconds that it filled still count as full. That only leaves gaps in the numbers, which do no harm.
 */
export class FullSeconds {
  readonly #next = new Map<number, number>();

  /**
   * Returns the first second at or after the given one that is not known to be full. Seconds are given by
   * their first index number.
   */
  after(first: number): number {
    let free = first;
    for (let next = this.#next.get(free); next !== undefined; next = this.#next.get(free)) free = next;
    for (let each = first; each !== free;) {
      const next = this.#next.get(each) ?? free;
      this.#next.set(each, free);
      each = next;
    }
    return free;
  }

  add(first: number): void {
    if (this.#next.size >= FULL_MAX) this.#next.clear();
    this.#next.set(first, first + DOCS_PER_SECOND);
  }
}

const FULL_MAX = 20_000;

/**
 * Returns a free index number for each entry, from the entry's second or a later one. Call it in the write
 * lane; otherwise another write may take the same number.
 */
export async function docsFor(
  q: Query,
  records: readonly Pick<EntryRecord, "at">[],
  full: FullSeconds,
): Promise<number[]> {
  const last = new Map<number, number>();
  const docs: number[] = [];
  for (const { at } of records) {
    for (let first = full.after(firstDocOf(at)); ; first = full.after(first)) {
      const before = last.get(first) ?? (await lastDocFrom(q, first));
      if (before < first + DOCS_PER_SECOND - 1) {
        last.set(first, before + 1);
        docs.push(before + 1);
        break;
      }
      full.add(first);
    }
  }
  return docs;
}

async function lastDocFrom(q: Query, first: number): Promise<number> {
  const last = sql`SELECT max(doc) FROM entries WHERE doc >= ${first} AND doc < ${first + DOCS_PER_SECOND}`;
  return (await firstOf(q, last, maybe(number()))) ?? first - 1;
}
