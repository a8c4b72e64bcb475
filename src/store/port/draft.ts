import { number, type RecordOf, word } from "../column.ts";
import type { EntryRecord, TurnRecord } from "./record.ts";

/**
 * The message that a running turn is writing, redacted; a session has at most one. `grow` appends to `text`
 * and replaces `end`.
 */
export const DRAFT = {
  rootId: word(),
  sessionId: word(),
  turnId: word(),
  kind: word<"text" | "thought">(),
  // `draftWrites` redacts `text` and `end`, unless they are redacted already.
  text: word(),
  end: word(),
  /** When the first words of the draft arrived. */
  at: number(),
  updatedAt: number(),
};
export type DraftRecord = RecordOf<typeof DRAFT>;

export interface DraftReads {
  /** Returns the draft as the entry it will become: marked `open`, with the index it would get now. */
  ofSession(sessionId: string): Promise<EntryRecord | null>;
  /**
   * Returns whether the agent has begun to work in the turn's current attempt: it reported something, a tool
   * call of it was served, the agent or one of its tools has written an entry, or the agent has a draft.
   */
  hasBegun(
    turn: Pick<
      TurnRecord,
      "id" | "sessionId" | "attempt" | "attemptFrom" | "reportedAttempt" | "servedAttempt"
    >,
  ): Promise<boolean>;
}

export interface DraftWrites {
  /**
   * Begins a draft, replaces the previous one, and returns the index that its entry would get now. `isClean`,
   * here and in `grow`: the text is already redacted and is not redacted again.
   */
  put(draft: Omit<DraftRecord, "rootId"> & { isClean?: boolean }): Promise<number>;
  /** Appends to the draft. Returns false if the turn has none. */
  grow(
    turn: { sessionId: string; id: string },
    by: { text: string; end: string; at: number; isClean?: boolean },
  ): Promise<boolean>;
  remove(sessionId: string): Promise<void>;
}
