import { closeIfOver } from "../kernel/round.ts";
import type { SessionRecord } from "../store/port/store.ts";
import type { EngineDeps } from "./deps.ts";

/** Records the end of background work that has stopped, has lasted too long, or has lost its process. */
export async function endBackground(deps: EngineDeps, session: SessionRecord): Promise<void> {
  const { id, rootId, fence } = session;
  await deps.store.write(rootId, { session: id, fence }, async (tx) => {
    const fresh = await tx.sessions.byId(session.id);
    // If a turn has started since `session` was read, that turn's settle decides about background work.
    if (fresh === null || fresh.backgroundUntil !== session.backgroundUntil) return;
    if ((await tx.turns.running(session.id)) !== null) return;
    await tx.sessions.patch(session.id, { backgroundUntil: null });
    await closeIfOver(tx, session.id, deps.now());
  });
}
