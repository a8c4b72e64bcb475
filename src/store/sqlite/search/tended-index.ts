import type { Log } from "../../../log.ts";
import type { EntryIndex } from "../../search/entry-index.ts";
import { FullSeconds, sqliteEntryIndex } from "./entry-index.ts";
import { IndexParts } from "./index-parts.ts";
import { Indexer } from "./indexer.ts";
import { type Plain, Traffic } from "../wal/traffic.ts";

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
