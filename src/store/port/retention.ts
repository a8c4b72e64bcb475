import { flag, number, type RecordOf, word } from "../column.ts";

/** A session that has entries which retention may remove. */
export const PRUNABLE = {
  id: word(),
  rootId: word(),
  createdAt: number(),
  lastActivityAt: number(),
  entryCount: number(),
  /** Whether a round is open. If so, none of the session's entries is removed. */
  isOpen: flag(),
  /** `bytes` counts the entries with a lower index than this. */
  measuredTo: number(),
  bytes: number(),
};
export type Prunable = RecordOf<typeof PRUNABLE>;

export interface RetentionReads {
  scopes(): Promise<string[]>;
  /** Returns sessions that have entries left, sorted by the time `by`, oldest first. */
  sessions(
    scope: string,
    page: { by: "createdAt" | "lastActivityAt"; after?: Prunable; limit: number },
  ): Promise<Prunable[]>;
  /** Returns the index of the first entry that was not removed; inherited entries are ignored. */
  keptFrom(sessionId: string): Promise<number>;
  /**
   * Returns all trees, sorted by id. `isIdle`: the tree has events, no open round, and no session that has
   * worked since `idleSince`.
   */
  trees(page: {
    idleSince: number;
    after: string;
    limit: number;
  }): Promise<{ rootId: string; isIdle: boolean }[]>;
}

export interface RetentionWrites {
  /** Counts the bytes of the next entries that were not counted yet, at most `limit` of them. */
  measure(sessionId: string, limit: number): Promise<{ bytes: number; isDone: boolean }>;
  /**
   * Removes the oldest entries: at most `limit`, only those older than `olderThan`, and only until `bytesMin`
   * bytes are freed. Null turns a condition off. Inherited entries stay.
   */
  prune(
    sessionId: string,
    what: { olderThan: number | null; bytesMin: number | null; limit: number },
  ): Promise<{ removed: number; bytes: number; isDone: boolean }>;
  /**
   * Removes the oldest events of the tree, if it has been idle since `idleSince`. Removes at most `limit`,
   * and stops at the first event that is not older than `idleSince` or whose transaction number is not below
   * `xidBelow`.
   */
  pruneEvents(what: {
    idleSince: number;
    xidBelow: number;
    limit: number;
  }): Promise<{ removed: number; isDone: boolean }>;
}
