import type { EntryRecord, NewEntry, Tx } from "../store/port/store.ts";

/** Appends entries and the events that refer to them, in one transaction. */
export async function appendEntries(
  tx: Tx,
  sessionId: string,
  entries: readonly NewEntry[],
): Promise<EntryRecord[]> {
  if (entries.length === 0) return [];
  const appended = await tx.entries.append(sessionId, entries);
  for (const entry of appended) {
    tx.append({
      sessionId,
      type: "entry.appended",
      text: null,
      data: { index: entry.index, kind: entry.kind, author: entry.author, turnId: entry.turnId },
      at: entry.at,
    });
  }
  return appended;
}
