import type { CallerContext } from "../port.ts";
import type { Tx } from "../../store/port/store.ts";

/**
 * Returns the turn that takes the messages of this reply, or null if the reply may carry none. An attached
 * session has no turns: its `turnId` is null and its fence decides.
 */
export async function replyCarrier(
  tx: Tx,
  caller: CallerContext & { kind: "session" },
): Promise<{ turnId: string | null } | null> {
  const turn = await tx.turns.running(caller.id);
  if (turn !== null) return turn.fence === caller.fence ? { turnId: turn.id } : null;
  const session = await tx.sessions.byId(caller.id);
  return session?.origin === "attached" && session.fence === caller.fence ? { turnId: null } : null;
}
