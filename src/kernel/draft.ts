import type { Tx } from "../store/port/store.ts";
import { appendEntries } from "./entry.ts";

/** Turns the message that a stopped daemon or process left unfinished into an entry marked `cut`. */
export async function cutDraft(tx: Tx, sessionId: string): Promise<void> {
  const open = await tx.drafts.ofSession(sessionId);
  if (open === null) return;
  await tx.drafts.remove(sessionId);
  const { turnId, author, kind, body, isSubagent, at } = open;
  const entry = { turnId, author, kind, body: { text: body.text, cut: true }, isSubagent, at };
  await appendEntries(tx, sessionId, [entry]);
}
