import type { EntryRecord, NewEntry, Tx } from "../store/port/store.ts";

/** Appends entries and the events that refer to them, in one transaction. */
export async function appendEntries(
  tx: Tx,
  sessionId: string,
  entries: readonly NewEntry[],
): Promise<EntryRecord[]> {
  if (entries.length === 0) return [];
  const appended = await tx.entries.append(sessionId, entries);
  for (const { index, kind, author, turnId, at } of appended) {
    tx.append({ sessionId, type: "entry.appended", data: { index, kind, author, turnId }, at });
  }
  return appended;
}
