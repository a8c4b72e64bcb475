/** A session of which entries may be removed, the oldest first. */
export interface Prunable {
  readonly id: string;
  readonly rootId: string;
  readonly createdAt: number;
  readonly lastActivityAt: number;
  readonly entryCount: number;
  /** Its round is open: nothing of it is removed. */
  readonly isOpen: boolean;
  /** Entries before this one are gone. */
  readonly entriesFrom: number;
  /** Entries before this one are counted in `bytes`. */
  readonly measuredTo: number;
  readonly bytes: number;
}

export interface RetentionReads {
  scopes(): Promise<string[]>;
  /** Those with entries left, by when they were made or were last at work, oldest first. */
  sessions(
    scope: string,
    page: { by: "createdAt" | "lastActivityAt"; after?: Prunable; limit: number },
  ): Promise<Prunable[]>;
  /** The first entry that is still there, beside what was inherited. */
  keptFrom(sessionId: string): Promise<number>;
  /** Every tree, by id. `isIdle`: it has events, no round is open, and nothing was at work since then. */
  trees(page: {
    idleSince: number;
    after: string;
    limit: number;
  }): Promise<{ rootId: string; isIdle: boolean }[]>;
}

export interface RetentionWrites {
  /** Counts at most so many entries more. */
  measure(sessionId: string, limit: number): Promise<{ bytes: number; isDone: boolean }>;
  /**
   * Removes at most so many of the oldest entries, of those older than a time, and no more than are needed for
   * so many bytes; null is any. What was inherited stays.
   */
  prune(
    sessionId: string,
    what: { olderThan: number | null; bytesMin: number | null; limit: number },
  ): Promise<{ removed: number; bytes: number; isDone: boolean }>;
  /**
   * Removes at most so many of the tree's oldest events, where the tree has been idle since then: those that
   * happened before, and whose transaction number is below `xidBelow`.
   */
  pruneEvents(what: {
    idleSince: number;
    xidBelow: number;
    limit: number;
  }): Promise<{ removed: number; isDone: boolean }>;
}
