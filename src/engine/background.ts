import { closeIfOver } from "../kernel/round.ts";
import type { SessionRecord } from "../store/port/store.ts";
import type { EngineDeps } from "./deps.ts";

/** Background work is over: it has stopped, lasted too long, or its process is gone. */
export async function endBackground(deps: EngineDeps, session: SessionRecord): Promise<void> {
  const { id, rootId, fence } = session;
  await deps.store.write(rootId, { session: id, fence }, async (tx) => {
    const fresh = await tx.sessions.byId(session.id);
    // A turn that came meanwhile has its own word on what goes on after it.
    if (fresh === null || fresh.backgroundUntil !== session.backgroundUntil) return;
    if ((await tx.turns.running(session.id)) !== null) return;
    await tx.sessions.patch(session.id, { backgroundUntil: null });
    await closeIfOver(tx, session.id, deps.now());
  });
}
