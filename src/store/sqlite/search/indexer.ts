import type { Log } from "../../../log.ts";
import { entries } from "../../tables/entry.ts";
import { indexedWords } from "../../../search/expression.ts";
import { valueOf, word } from "../../column.ts";
import { sql, type Query } from "../../sql.ts";
import { addToIndex, docsFor, type FullSeconds } from "./entry-index.ts";
import type { Traffic } from "../wal/checkpointer.ts";

/** A slice should take this long; how many entries that are is learned from slice to slice. */
const SLICE_MS = 4;
const SLICE_MAX = 64;
/** Between slices, while others write; and while nobody does. */
const PAUSE_MS = 50;
const PAUSE_ALONE_MS = 1;

/**
 * Indexes entries that were written without it (from disk, or before there was one) through the lane, the newest
 * day's first, in slices.
 */
export class Indexer {
  readonly #traffic: Traffic;
  readonly #grown: () => void;
  readonly #full: FullSeconds;
  readonly #haveOthersWritten: () => boolean;
  readonly #log: Log;
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> = Promise.resolve();
  #isAlone = false;
  #slice = 8;
  #isClosed = false;

  constructor(traffic: Traffic, { grown, full, log }: { grown: () => void; full: FullSeconds; log: Log }) {
    this.#traffic = traffic;
    this.#grown = grown;
    this.#full = full;
    this.#haveOthersWritten = traffic.watch();
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

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#working;
  }

  #work(step: () => Promise<void>): void {
    this.#working = this.#working.then(step).catch((error: unknown) => {
      // The next start takes it up again.
      if (!this.#isClosed) this.#log.warn({ error: String(error) }, "the search index could not be tended");
    });
  }

  async #index(): Promise<void> {
    this.#timer = null;
    if (this.#isClosed) return;
    this.#isAlone = !this.#haveOthersWritten();
    let tookMs = 0;
    const indexed = await this.#traffic.own(async (q) => {
      const from = performance.now();
      const some = await indexSome(q, this.#slice, this.#full);
      if (some > 0) this.#grown();
      tookMs = performance.now() - from;
      return some;
    });
    if (indexed === 0) return;
    this.#slice = tookMs > SLICE_MS ? Math.max(1, this.#slice >> 1) : Math.min(SLICE_MAX, this.#slice + 1);
    this.start();
  }
}

/** How many were indexed. */
async function indexSome(q: Query, limit: number, full: FullSeconds): Promise<number> {
  // Word for word as `entries_unindexed` has it: else every slice would sort all that is left.
  const rows = await q.all(sql`SELECT s.agent, s.scope, ${entries.columnsOf("e")}
    FROM entries e JOIN sessions s ON s.id = e.session_id
    WHERE e.doc IS NULL ORDER BY e.at / 86400000 DESC, e.rowid LIMIT ${limit}`);
  const found = rows
    .map((row) => ({
      agent: valueOf(row[0], word()),
      scope: valueOf(row[1], word()),
      record: entries.record(row.slice(2)),
    }))
    .toSorted((a, b) => a.record.at - b.record.at);
  const docs = await docsFor(
    q,
    found.map(({ record }) => record),
    full,
  );
  // Within one write the index wants its numbers in ascending order.
  const numbered = found.map((each, i) => ({ ...each, doc: docs[i]! })).toSorted((a, b) => a.doc - b.doc);
  for (const { record, agent, scope, doc } of numbered) {
    await q.run(sql`UPDATE entries SET doc = ${doc}
      WHERE session_id = ${record.sessionId} AND idx = ${record.index}`);
    await addToIndex(q, doc, indexedWords(record, { agent, scope }));
  }
  return rows.length;
}
