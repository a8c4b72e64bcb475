import type { Log } from "../../log.ts";
import { entries } from "../entry.ts";
import { indexedWords } from "../entry-index.ts";
import { sql, type Query } from "../sql.ts";
import { addToIndex, docsFor } from "./entry-index.ts";

/** The row of `meta` that says below which row of `entries` nothing is indexed yet. */
export const UNINDEXED = "unindexed_below";

/** A slice should take this long; how many entries that are is learned from slice to slice. */
const SLICE_MS = 3;
const SLICE_MAX = 64;
const PAUSE_MS = 15;
/** Each write adds a part to the index. From this many on they are merged, this many pages at a time. */
const PARTS_MIN = 8;
const PAGES = 16;

type Plain = <T>(work: (q: Query) => Promise<T>) => Promise<T>;

/**
 * Tends the index through the lane, in slices: entries from before there was an index, newest first, and
 * the merging of its parts, which FTS5 would otherwise do in the middle of somebody's write.
 */
export class Indexer {
  readonly #plain: Plain;
  readonly #log: Log;
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> = Promise.resolve();
  #isGrown = false;
  #isMerging = false;
  #parts = 0;
  #slice = 8;
  #isClosed = false;

  constructor(plain: Plain, log: Log) {
    this.#plain = plain;
    this.#log = log;
  }

  /** Takes up what an older version left, or a daemon that was killed in the middle of it. */
  start(): void {
    this.#timer = setTimeout(() => this.#work(() => this.#index()), PAUSE_MS);
    this.#timer.unref();
  }

  /** Something was added to the index. */
  grown(): void {
    this.#isGrown = true;
  }

  committed(): void {
    if (!this.#isGrown) return;
    this.#isGrown = false;
    this.#parts += 1;
    if (this.#parts < PARTS_MIN || this.#isMerging || this.#isClosed) return;
    this.#isMerging = true;
    this.#work(() => this.#merge());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#working;
  }

  #work(step: () => Promise<void>): void {
    this.#working = this.#working.then(step).catch((error: unknown) => {
      // The next start, or the next write, takes it up again.
      if (!this.#isClosed) this.#log.warn({ error: String(error) }, "the search index could not be tended");
    });
  }

  async #merge(): Promise<void> {
    this.#parts = 0;
    try {
      while (!this.#isClosed && (await this.#plain(mergeSome))) await pause();
    } finally {
      this.#isMerging = false;
    }
  }

  async #index(): Promise<void> {
    this.#timer = null;
    if (this.#isClosed) return;
    const from = performance.now();
    const indexed = await this.#plain((q) => indexSome(q, this.#slice));
    if (indexed === null) return;
    const tookMs = performance.now() - from;
    this.#slice = tookMs > SLICE_MS ? Math.max(1, this.#slice >> 1) : Math.min(SLICE_MAX, this.#slice + 1);
    if (indexed === 0) this.#log.info({}, "every entry can be searched");
    else this.start();
  }
}

/** False when there is nothing left to merge. */
async function mergeSome(q: Query): Promise<boolean> {
  const before = await changes(q);
  await q.run(sql`INSERT INTO entry_index (entry_index, rank) VALUES ('merge', ${PAGES})`);
  return (await changes(q)) - before >= 2;
}

async function changes(q: Query): Promise<number> {
  return (await q.get(sql`SELECT total_changes()`))?.[0] as number;
}

/** How many were indexed; null where there was nothing to do. The mark moves in the same transaction. */
async function indexSome(q: Query, limit: number): Promise<number | null> {
  const mark = await q.get(sql`SELECT value FROM meta WHERE key = ${UNINDEXED}`);
  if (mark === null) return null;
  const below = Number(mark[0]);
  const rows = await q.all(sql`SELECT e.rowid, s.agent, s.scope, e.doc, ${entries.columnsOf("e")}
    FROM entries e JOIN sessions s ON s.id = e.session_id
    WHERE e.rowid < ${below} ORDER BY e.rowid DESC LIMIT ${limit}`);
  if (rows.length === 0) {
    await q.run(sql`DELETE FROM meta WHERE key = ${UNINDEXED}`);
    return 0;
  }
  // Within one write the index wants its numbers in ascending order.
  const found = rows
    .filter((row) => row[3] === null)
    .map((row) => ({
      agent: row[1] as string,
      scope: row[2] as string,
      record: entries.record(row.slice(4)),
    }))
    .toSorted((a, b) => a.record.at - b.record.at);
  const docs = await docsFor(
    q,
    found.map(({ record }) => record),
  );
  for (const [i, { record, agent, scope }] of found.entries()) {
    const doc = docs[i]!;
    await q.run(sql`UPDATE entries SET doc = ${doc}
      WHERE session_id = ${record.sessionId} AND idx = ${record.index}`);
    await addToIndex(q, doc, indexedWords(record, { agent, scope }));
  }
  await q.run(sql`UPDATE meta SET value = ${String(rows.at(-1)?.[0])} WHERE key = ${UNINDEXED}`);
  return rows.length;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
