import { setImmediate as turn, setTimeout as rest } from "node:timers/promises";
import type { Log } from "../../../log.ts";
import { numberOf } from "../../column.ts";
import { type Query, sql } from "../../sql.ts";
import type { EntryIndex } from "../../search/entry-index.ts";
import { FullSeconds, sqliteEntryIndex } from "./entry-index.ts";
import { Indexer } from "./indexer.ts";
import { type Plain, Traffic } from "../wal/checkpointer.ts";

/** Each write adds a part to the index. From this many on they are merged, for so long at a time. */
const PARTS_MIN = 8;
const SLICE_MS = 2;
const PAGES = 16;
/** With so many new ones merging does not keep up, and takes longer at a time: each makes searches slower. */
const PARTS_MANY = 24;
const SLICE_LONG_MS = 5;
/** Between slices in quiet moments. */
const PAUSE_MS = 4;
/** How many of about one size become one part: in quiet moments, and at other times. */
const MERGE_MORE = sql`INSERT INTO entry_index (entry_index, rank) VALUES ('usermerge', 2)`;
const MERGE_FEWER = sql`INSERT INTO entry_index (entry_index, rank) VALUES ('usermerge', 4)`;
/** Nobody has written for so long. */
const QUIET_MS = 2_000;
/** Fewer are not worth a write. */
const FEW = 2;

/**
 * Merges the parts of the index, in slices, which FTS5 would otherwise do in the middle of somebody's write. A search
 * looks into every part: so in quiet moments they are made as few as can be without writing all of it anew.
 */
export class IndexParts {
  readonly #traffic: Traffic;
  readonly #log: Log;
  readonly #haveOthersWritten: () => boolean;
  readonly #quiet: NodeJS.Timeout;
  #working: Promise<void> = Promise.resolve();
  #isGrown = false;
  #parts = 0;
  #isMerging = false;
  /** Nothing has been added since all was merged that could be. */
  #isTidy = false;
  #isClosed = false;

  constructor(traffic: Traffic, log: Log) {
    this.#traffic = traffic;
    this.#haveOthersWritten = traffic.watch();
    this.#log = log;
    this.#quiet = setTimeout(() => this.#work(() => this.#tidy()), QUIET_MS).unref();
  }

  /** Something is being added to the index. */
  grown(): void {
    this.#isGrown = true;
  }

  committed(): void {
    if (this.#isClosed) return;
    if (this.#isGrown) this.#added();
    if (!this.#isTidy && (this.#isGrown || this.#haveOthersWritten())) this.#quiet.refresh();
    this.#isGrown = false;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#quiet);
    await this.#working;
  }

  #added(): void {
    this.#isTidy = false;
    this.#parts += 1;
    if (this.#parts < PARTS_MIN || this.#isMerging) return;
    this.#isMerging = true;
    this.#work(() => this.#merge());
  }

  #work(step: () => Promise<void>): void {
    this.#working = this.#working.then(step).catch((error: unknown) => {
      // The next start, or the next write, takes it up again.
      if (!this.#isClosed) this.#log.warn({ error: String(error) }, "the search index could not be merged");
    });
  }

  async #merge(): Promise<void> {
    this.#parts = 0;
    try {
      while (!this.#isClosed && (await this.#traffic.own((q) => mergeSome(q, this.#sliceMs())))) await turn();
    } finally {
      this.#isMerging = false;
    }
  }

  #sliceMs(): number {
    return this.#parts < PARTS_MANY ? SLICE_MS : SLICE_LONG_MS;
  }

  /** Until nothing is left to merge. Where somebody writes meanwhile it goes on after the next quiet moment. */
  async #tidy(): Promise<void> {
    if (this.#isTidy) return;
    this.#isTidy = true;
    this.#haveOthersWritten();
    while (!this.#isClosed && this.#isTidy && (await this.#traffic.own(tidySome))) {
      await rest(PAUSE_MS);
      if (this.#haveOthersWritten()) this.#isTidy = false;
    }
    if (!this.#isTidy && !this.#isClosed) this.#quiet.refresh();
  }
}

/** False when there is nothing left to merge. */
async function mergeSome(q: Query, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  do {
    const before = await changes(q);
    await q.run(sql`INSERT INTO entry_index (entry_index, rank) VALUES ('merge', ${PAGES})`);
    if ((await changes(q)) - before < 2) return false;
  } while (performance.now() < until);
  return true;
}

/** In one write, so that whatever ends the daemon leaves the index with the rule for busy times. */
async function tidySome(q: Query): Promise<boolean> {
  if ((await partsOf(q)) <= FEW) return false;
  await q.run(MERGE_MORE);
  const isMore = await mergeSome(q, SLICE_MS);
  await q.run(MERGE_FEWER);
  return isMore;
}

function changes(q: Query): Promise<number> {
  return numberOf(q, sql`SELECT total_changes()`);
}

/** From part to part, however much each of them holds. */
function partsOf(q: Query): Promise<number> {
  const parts = sql`WITH RECURSIVE part (id) AS (
      SELECT min(segid) FROM entry_index_idx
      UNION ALL SELECT (SELECT min(segid) FROM entry_index_idx WHERE segid > id) FROM part WHERE id IS NOT NULL)
    SELECT count(id) FROM part`;
  return numberOf(q, parts);
}

export interface TendedIndex {
  readonly index: EntryIndex;
  /** Entries were written without it. */
  behind(): void;
  /** So many writes were committed together. */
  committed(writes: number): void;
  close(): Promise<void>;
}

/** The index of words, and those that see to it beside everybody's writes. */
export function tendedIndex(plain: Plain, log: Log): TendedIndex {
  const traffic = new Traffic(plain);
  const parts = new IndexParts(traffic, log);
  const grown = (): void => parts.grown();
  const full = new FullSeconds();
  const indexer = new Indexer(traffic, { grown, full, log });
  // There may be some that a daemon left which was killed meanwhile.
  indexer.start();
  return {
    index: sqliteEntryIndex(grown, full),
    behind: () => indexer.start(),
    committed(writes) {
      traffic.committed(writes);
      parts.committed();
    },
    async close() {
      await Promise.all([indexer.close(), parts.close()]);
    },
  };
}
