import type { SessionRecord, Tx } from "../store/port/store.ts";
import { makeVoid } from "./admit.ts";
import { closeRound } from "./round.ts";
import { voidUnread } from "./trigger.ts";

interface CancelOrder {
  /** Who cancelled, as text for the callback: "the user", "its parent". */
  readonly by: string;
  readonly reason: string | null;
  readonly now: number;
}

export interface Cancelled {
  /** Sessions ended by this transaction; the cancelled session itself is first. */
  readonly marked: readonly SessionRecord[];
  /** Number of marked sessions that had an open round. */
  readonly wereOpen: number;
  readonly wasOpen: boolean;
  readonly notOurs: readonly SessionRecord[];
}

/**
 * Marks a session and its descendants as ended (the tombstone). Once committed, everything from these
 * sessions is refused. Children with `onParentEnd: "detach"` are detached instead and continue.
 */
export async function cancelSubtree(tx: Tx, session: SessionRecord, order: CancelOrder): Promise<Cancelled> {
  const { subtree, detached } = await collect(tx, session);
  for (const child of detached) await detach(tx, child, order.now);
  const ours = subtree.filter((each) => each.origin === "managed" && each.endedAt === null);
  const open = ours.filter((each) => each.roundOpen);
  for (const each of ours) await markEnded(tx, each, order);
  // Closes the rounds of children before the rounds of their parents.
  for (const each of open.toReversed()) {
    const isNamed = each.id === session.id;
    await closeRound(tx, each, {
      outcome: "cancelled",
      ...order,
      stoppedBelow: isNamed ? open.length - 1 : 0,
      ...(isNamed ? {} : { silent: "its parent was cancelled with it" }),
    });
  }
  return {
    marked: ours,
    wereOpen: open.length,
    wasOpen: open.some((each) => each.id === session.id),
    notOurs: subtree.filter((each) => each.origin !== "managed"),
  };
}

/**
 * Removes the tombstone. Void messages stay void, and descendants stay ended. Because of the new fence, late
 * writes of an earlier process are refused. The next message opens a new round.
 */
export async function liftTombstone(
  tx: Tx,
  session: SessionRecord,
  { by, now }: { by: string; now: number },
): Promise<void> {
  const patch = {
    endedAt: null,
    endReason: null,
    endBy: null,
    endNote: null,
    held: null,
    fence: session.fence + 1,
    updatedAt: now,
  } as const;
  Object.assign(session, patch);
  await tx.sessions.patch(session.id, patch);
  const text = session.parentId === null ? null : `child session ${session.id} reopened by ${by}`;
  tx.append({ sessionId: session.id, type: "session.reopened", text, data: { by }, at: now });
  tx.wake(session.id);
}

export async function detach(tx: Tx, session: SessionRecord, now: number): Promise<void> {
  session.detachedAt = now;
  await tx.sessions.patch(session.id, { detachedAt: now, updatedAt: now });
  const { id: sessionId, parentId } = session;
  const text = `session ${sessionId} goes on without its parent`;
  tx.append({ sessionId, type: "session.detached", text, data: { parentId }, at: now });
}

async function collect(
  tx: Tx,
  session: SessionRecord,
): Promise<{ subtree: SessionRecord[]; detached: SessionRecord[] }> {
  const tree = await tx.sessions.tree(session.rootId);
  const subtree = [session];
  const detached: SessionRecord[] = [];
  // The loop also visits the sessions that it adds.
  for (const { id } of subtree) {
    for (const child of tree) {
      if (child.parentId !== id || child.detachedAt !== null) continue;
      if (child.onParentEnd === "detach" && child.endedAt === null) detached.push(child);
      else subtree.push(child);
    }
  }
  return { subtree, detached };
}

async function markEnded(tx: Tx, session: SessionRecord, { by, reason, now }: CancelOrder): Promise<void> {
  const patch = {
    endedAt: now,
    endReason: "cancelled",
    endBy: by,
    endNote: reason,
    updatedAt: now,
    // Closing a finished session is not activity, so its time of last activity stays.
    ...(session.roundOpen ? { lastActivityAt: now } : {}),
  } as const;
  Object.assign(session, patch);
  await tx.sessions.patch(session.id, patch);
  await tx.tokens.revokeOfSession(session.id, now);
  for (const message of await tx.messages.ofSession(session.id, ["queued"])) {
    await makeVoid(tx, message, { reason: "the session was cancelled", now });
  }
  for (const trigger of await tx.triggers.ofSession(session.id)) {
    if (trigger.status !== "open" || trigger.type === "session_complete") continue;
    await tx.triggers.close(trigger.id, { status: "withdrawn", closedAt: now });
    await voidUnread(tx, trigger, now);
  }
  const text = session.parentId === null ? null : `child session ${session.id} cancelled`;
  const data = { reason: "cancelled", by, note: reason };
  tx.append({ sessionId: session.id, type: "session.ended", text, data, at: now });
  tx.wake(session.id);
}
