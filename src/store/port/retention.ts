/** A session whose entries may be removed, oldest first. */
export interface Prunable {
  readonly id: string;
  readonly rootId: string;
  readonly createdAt: number;
  readonly lastActivityAt: number;
  readonly entryCount: number;
  /** Its round is open: none of its entries is removed. */
  readonly isOpen: boolean;
  /** Entries with a lower index have been removed. */
  readonly entriesFrom: number;
  /** Entries with a lower index are counted in `bytes`. */
  readonly measuredTo: number;
  readonly bytes: number;
}

export interface RetentionReads {
  scopes(): Promise<string[]>;
  /** Returns sessions that have entries left, by the time they were created or last worked, oldest first. */
  sessions(
    scope: string,
    page: { by: "createdAt" | "lastActivityAt"; after?: Prunable; limit: number },
  ): Promise<Prunable[]>;
  /** Returns the index of the first entry that is still there; inherited entries do not count. */
  keptFrom(sessionId: string): Promise<number>;
  /**
   * Returns every tree, by id. `isIdle`: it has events, no open round, and none of its sessions has worked
   * since `idleSince`.
   */
  trees(page: {
    idleSince: number;
    after: string;
    limit: number;
  }): Promise<{ rootId: string; isIdle: boolean }[]>;
}

export interface RetentionWrites {
  /** Counts the bytes of at most `limit` more entries. */
  measure(sessionId: string, limit: number): Promise<{ bytes: number; isDone: boolean }>;
  /**
   * Removes the oldest entries: at most `limit`, only those older than `olderThan`, and no more than it takes
   * to free `bytesMin`; null means no condition. Inherited entries stay.
   */
  prune(
    sessionId: string,
    what: { olderThan: number | null; bytesMin: number | null; limit: number },
  ): Promise<{ removed: number; bytes: number; isDone: boolean }>;
  /**
   * Removes at most `limit` of the oldest events of a tree that has been idle since `idleSince`: events from
   * before that time whose transaction number is below `xidBelow`.
   */
  pruneEvents(what: {
    idleSince: number;
    xidBelow: number;
    limit: number;
  }): Promise<{ removed: number; isDone: boolean }>;
}
