import type { Log } from "../../log.ts";
import { entries } from "../entry.ts";
import { indexedWords } from "../entry-index.ts";
import { sql, type Query } from "../sql.ts";
import { addToIndex, docsFor } from "./entry-index.ts";

/** A slice should take this long; how many entries that are is learned from slice to slice. */
const SLICE_MS = 4;
const SLICE_MAX = 64;
/** Between slices, while others write; and while nobody does. */
const PAUSE_MS = 50;
const PAUSE_ALONE_MS = 1;
/** Each write adds a part to the index. From this many on they are merged, for so long at a time. */
const PARTS_MIN = 8;
const MERGE_MS = 2;
const PAGES = 16;

type Plain = <T>(work: (q: Query) => Promise<T>) => Promise<T>;

/**
 * Tends the index through the lane, in slices: entries that were written without it (from disk, or before
 * there was one), newest first, and the merging of its parts, which FTS5 would otherwise do in the middle
 * of somebody's write.
 */
export class Indexer {
  readonly #plain: Plain;
  readonly #log: Log;
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> = Promise.resolve();
  #commits = 0;
  /** How many there were after the last thing done here. */
  #ownCommits = 0;
  #isAlone = false;
  #isGrown = false;
  #isMerging = false;
  #parts = 0;
  #slice = 8;
  #isClosed = false;

  constructor(plain: Plain, log: Log) {
    this.#plain = plain;
    this.#log = log;
  }

  /** There may be entries without an index: written so, or left by a daemon that was killed meanwhile. */
  start(): void {
    if (this.#timer !== null || this.#isClosed) return;
    this.#timer = setTimeout(
      () => this.#work(() => this.#index()),
      this.#isAlone ? PAUSE_ALONE_MS : PAUSE_MS,
    );
    this.#timer.unref();
  }

  /** Something was added to the index. */
  grown(): void {
    this.#isGrown = true;
  }

  committed(): void {
    this.#commits += 1;
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
      this.#ownCommits = this.#commits;
    } finally {
      this.#isMerging = false;
    }
  }

  async #index(): Promise<void> {
    this.#timer = null;
    if (this.#isClosed) return;
    this.#isAlone = this.#commits === this.#ownCommits;
    let tookMs = 0;
    const indexed = await this.#plain(async (q) => {
      const from = performance.now();
      const some = await indexSome(q, this.#slice);
      tookMs = performance.now() - from;
      return some;
    });
    if (indexed === 0) return;
    this.#slice = tookMs > SLICE_MS ? Math.max(1, this.#slice >> 1) : Math.min(SLICE_MAX, this.#slice + 1);
    this.grown();
    this.#ownCommits = this.#commits;
    this.start();
  }
}

/** False when there is nothing left to merge. */
async function mergeSome(q: Query): Promise<boolean> {
  const until = performance.now() + MERGE_MS;
  do {
    const before = await changes(q);
    await q.run(sql`INSERT INTO entry_index (entry_index, rank) VALUES ('merge', ${PAGES})`);
    if ((await changes(q)) - before < 2) return false;
  } while (performance.now() < until);
  return true;
}

async function changes(q: Query): Promise<number> {
  return (await q.get(sql`SELECT total_changes()`))?.[0] as number;
}

/** How many were indexed. */
async function indexSome(q: Query, limit: number): Promise<number> {
  const rows = await q.all(sql`SELECT s.agent, s.scope, ${entries.columnsOf("e")}
    FROM entries e JOIN sessions s ON s.id = e.session_id
    WHERE e.doc IS NULL ORDER BY e.at DESC LIMIT ${limit}`);
  // Within one write the index wants its numbers in ascending order.
  const found = rows
    .map((row) => ({
      agent: row[0] as string,
      scope: row[1] as string,
      record: entries.record(row.slice(2)),
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
  return rows.length;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
