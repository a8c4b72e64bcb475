import type { Log } from "../../../log.ts";
import { entries } from "../../tables/entry.ts";
import { indexedWords } from "../../../search/expression.ts";
import { valuesOf, word } from "../../column.ts";
import { sql, type Query } from "../../sql.ts";
import { vectorOf } from "./entry-index.ts";

const SLICE = 50;
const PAUSE_MS = 50;

/**
 * Indexes entries that were written without it (from disk, or before there was one), newest first, a few at a
 * time. Another node may do the same.
 */
export class Indexer {
  readonly #q: Query;
  readonly #log: Log;
  #timer: NodeJS.Timeout | null = null;
  #working: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(q: Query, log: Log) {
    this.#q = q;
    this.#log = log;
  }

  start(): void {
    if (this.#timer !== null || this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#working = this.#index().catch((error: unknown) =>
        this.#log.warn({ error: String(error) }, "the search index is taken up again at the next start"),
      );
    }, PAUSE_MS);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#working;
  }

  async #index(): Promise<void> {
    const rows = await this.#q.all(sql`SELECT s.agent, s.scope, ${entries.columnsOf("e")}
      FROM entries e JOIN sessions s ON s.id = e.session_id
      WHERE e.words IS NULL ORDER BY e.at DESC LIMIT ${SLICE}`);
    for (const row of rows) {
      const record = entries.record(row.slice(2));
      const [agent, scope] = valuesOf(row, word(), word());
      const words = vectorOf(indexedWords(record, { agent, scope }));
      await this.#q.run(sql`UPDATE entries SET words = ${words}::text::tsvector
        WHERE session_id = ${record.sessionId} AND idx = ${record.index} AND words IS NULL`);
    }
    if (rows.length > 0 && !this.#isClosed) this.start();
  }
}
