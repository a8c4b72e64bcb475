import type { CallerContext } from "../port.ts";
import type { MessageRecord, Tx } from "../../store/port/store.ts";

export interface ReplyCarrier {
  readonly turnId: string | null;
}

/**
 * Returns the turn that takes the messages in this reply: the caller's running turn. Its `turnId` is null for
 * an attached session, which has no turns. Returns null if the reply may carry no messages, for example
 * because the caller's fence is old.
 */
export async function replyCarrier(
  tx: Tx,
  caller: CallerContext & { kind: "session" },
): Promise<ReplyCarrier | null> {
  const turn = await tx.turns.running(caller.id);
  if (turn !== null) return turn.fence === caller.fence ? { turnId: turn.id } : null;
  const session = await tx.sessions.byId(caller.id);
  return session?.origin === "attached" && session.fence === caller.fence ? { turnId: null } : null;
}

/** Takes a message into this reply. Returns false if it was taken before or `carrier` is null. */
export async function takeIntoReply(
  tx: Tx,
  { id, sessionId }: MessageRecord,
  { carrier, now }: { carrier: ReplyCarrier | null; now: number },
): Promise<boolean> {
  if (carrier === null) return false;
  const { turnId } = carrier;
  const patch = { status: "taken", carrier: "tool", turnId, takenAt: now } as const;
  if (!(await tx.messages.move(id, ["queued"], patch))) return false;
  const data = { messageId: id, carrier: "tool", turnId };
  tx.append({ sessionId, type: "message.taken", text: null, data, at: now });
  return true;
}
