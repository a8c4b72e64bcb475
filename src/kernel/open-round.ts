import type { SessionRecord, Tx } from "../store/port/store.ts";

/** Opens a round where none is open; in the transaction that admits the message. */
export async function openRound(tx: Tx, session: SessionRecord, now: number): Promise<void> {
  if (session.roundOpen) return;
  const patch = { round: session.round + 1, roundOpen: true, roundOpenedAt: now, held: null, pausedMs: 0 };
  Object.assign(session, patch);
  await tx.sessions.patch(session.id, { ...patch, seen: false, updatedAt: now });
  tx.append({
    sessionId: session.id,
    type: "round.opened",
    text: null,
    data: { round: session.round },
    at: now,
  });
}
