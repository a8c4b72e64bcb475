import type { CallerContext } from "../port.ts";
import type { Tx } from "../../store/port/store.ts";

/**
 * Where a reply to this call takes the messages it carries: into the caller's running turn, or null where
 * it may carry none. Of an attached session we see no turns; its token is its own, so its calls are.
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
