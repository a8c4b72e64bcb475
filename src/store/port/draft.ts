import type { EntryRecord, TurnRecord } from "./record.ts";

/**
 * The message that a running turn is writing; a session has at most one. It is redacted. When it grows, its
 * end (`ending`) is replaced and the rest is only appended to.
 */
export interface DraftRecord {
  rootId: string;
  sessionId: string;
  turnId: string;
  kind: "text" | "thought";
  text: string;
  end: string;
  /** When its first words arrived. */
  at: number;
  updatedAt: number;
}

export interface DraftReads {
  /** Returns the draft as the entry it will become: marked `open`, with the index it would get now. */
  ofSession(sessionId: string): Promise<EntryRecord | null>;
  /**
   * Whether the agent has begun to work in the turn's current attempt: there is an entry by it or its tools,
   * or a draft.
   */
  hasBegun(turn: Pick<TurnRecord, "id" | "sessionId" | "attemptFrom">): Promise<boolean>;
}

export interface DraftWrites {
  /**
   * Begins a draft and replaces the previous one. Returns the index that its entry would get now. `isClean`,
   * here and below: the text was already redacted as it arrived and is not redacted again.
   */
  put(draft: Omit<DraftRecord, "rootId"> & { isClean?: boolean }): Promise<number>;
  /** Appends to the draft. Returns false if the turn has none. */
  grow(
    turn: { sessionId: string; id: string },
    by: { text: string; end: string; at: number; isClean?: boolean },
  ): Promise<boolean>;
  remove(sessionId: string): Promise<void>;
}
