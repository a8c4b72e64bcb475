import type { IndexedSession } from "../../search/expression.ts";
import type { EntryRecord } from "../port/record.ts";
import type { Query } from "../sql.ts";

/** How a database stores entries together with their index, in one transaction. */
export interface EntryIndex {
  insert(q: Query, records: readonly EntryRecord[], session: IndexedSession): Promise<void>;
  /** Replaces the index rows of a session's entries in this range. Skips entries that are not indexed yet. */
  replace(q: Query, entries: IndexedRange, session: IndexedSession): Promise<void>;
}

export interface IndexedRange {
  readonly sessionId: string;
  readonly from: number;
  readonly to: number;
}
