import { land } from "../../kernel/admit.ts";
import { appendEntries } from "../../kernel/entry.ts";
import type { NewEntry, TurnRecord, Tx } from "../../store/port/store.ts";
import { keepCompactions } from "../turn/checkpoints.ts";
import { type DraftStep, writeDraft } from "./draft.ts";

/** What one write of a turn's recorder adds. */
export interface Batch {
  readonly entries: readonly NewEntry[];
  /** Delivery ids found in results of our tools. The agent has received the messages with these ids. */
  readonly landed: readonly string[];
  readonly draft: DraftStep | null;
}

export async function writeBatch(
  tx: Tx,
  turn: TurnRecord,
  { batch, now }: { batch: Batch; now: number },
): Promise<void> {
  const appended = await appendEntries(tx, turn.sessionId, batch.entries);
  await keepCompactions(tx, turn, appended);
  if (batch.draft !== null) await writeDraft(tx, turn, { step: batch.draft, now });
  for (const id of batch.landed) {
    const message = await tx.messages.byDeliveryId(turn.sessionId, id);
    if (message !== null && message.status === "taken") await land(tx, message, now);
  }
}
