import type { SessionRecord, TurnRecord } from "../../store/port/store.ts";
import type { OperationDeps } from "../deps.ts";
import { until } from "./until.ts";

/** A turn inside a blocking call holds no slot, so that others can run. */
export async function blocking<T>(
  deps: OperationDeps,
  self: SessionRecord,
  look: () => Promise<T | null>,
  limit: { timeMs: number; signal: AbortSignal },
): Promise<T | null> {
  const at = await look();
  if (at !== null || limit.timeMs <= 0) return at;
  const turn = await changeBlocked(deps, self, null, 1);
  try {
    return await until(deps, { rootId: self.rootId, timeoutMs: limit.timeMs, signal: limit.signal }, look);
  } finally {
    if (turn !== null) await changeBlocked(deps, self, turn, -1);
  }
}

async function changeBlocked(
  deps: OperationDeps,
  self: SessionRecord,
  of: TurnRecord | null,
  by: 1 | -1,
): Promise<TurnRecord | null> {
  return deps.store.write(self.rootId, async (tx) => {
    const turn = await tx.turns.running(self.id);
    if (turn === null || (of !== null && (turn.id !== of.id || turn.attempt !== of.attempt))) return null;
    await tx.turns.patchRunning(turn.id, turn.fence, { blocked: Math.max(0, turn.blocked + by) });
    // Any session of the node may be waiting for this slot; its own wake makes the runner look.
    tx.wake(self.id);
    return turn;
  });
}
