import type { EntryRecord, TurnRecord } from "./record.ts";

/**
 * The message that a running turn is writing at the moment; a session has at most one. It is kept without secrets.
 * The end of it is replaced each time it grows, the rest is only added to.
 */
export interface DraftRecord {
  rootId: string;
  sessionId: string;
  turnId: string;
  kind: "text" | "thought";
  text: string;
  end: string;
  /** When its first words came. */
  at: number;
  updatedAt: number;
}

export interface DraftReads {
  /** The open message as the entry it will become, marked `open`, at the index it would have now. */
  ofSession(sessionId: string): Promise<EntryRecord | null>;
  /** Whether the agent had begun to work in the turn's attempt: an entry of it or of its tools, or a draft. */
  hasBegun(turn: Pick<TurnRecord, "id" | "sessionId" | "attemptFrom">): Promise<boolean>;
}

export interface DraftWrites {
  /**
   * Begins a draft in place of the one before. Returns the index its entry would have now. `isClean`, here and below:
   * the text lost its secrets as it came, and is not searched again.
   */
  put(draft: Omit<DraftRecord, "rootId"> & { isClean?: boolean }): Promise<number>;
  /** Adds to the draft. False where the turn has none. */
  grow(
    turn: { sessionId: string; id: string },
    by: { text: string; end: string; at: number; isClean?: boolean },
  ): Promise<boolean>;
  remove(sessionId: string): Promise<void>;
}
