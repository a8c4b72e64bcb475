import type { SessionRecord } from "../../store/port/store.ts";
import type { OperationDeps } from "../deps.ts";

/**
 * Returns the sessions to wait for. Replaces each step of a chain by the chain's current step, because
 * earlier steps do not report.
 */
export async function stepsOf(deps: OperationDeps, ids: readonly string[]): Promise<SessionRecord[]> {
  const rows = new Map<string, SessionRecord>();
  for (const id of ids) {
    const session = await deps.store.read.sessions.byId(id);
    const step = session === null ? null : await newestStep(deps, session);
    if (step !== null) rows.set(step.id, step);
  }
  return [...rows.values()];
}

async function newestStep(deps: OperationDeps, session: SessionRecord): Promise<SessionRecord> {
  const { chainId } = session.spawnConfig;
  if (typeof chainId !== "string" || session.parentId === null) return session;
  const family = await deps.store.read.sessions.children(session.parentId);
  return family.findLast((each) => each.spawnConfig["chainId"] === chainId) ?? session;
}
