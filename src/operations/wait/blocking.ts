import type { Caller } from "../../contract/index.ts";
import type { Tx, TurnRecord } from "../../store/port/store.ts";
import type { OperationDeps } from "../deps.ts";
import { until } from "./until.ts";
import { processOf, writeAs } from "../access/authority.ts";

type Waiter = Caller & { kind: "session" };

/**
 * Waits until `look` returns a result. Meanwhile the caller's turn does not count against the node's limits,
 * so that other sessions can run.
 */
export async function blocking<T>(
  deps: OperationDeps,
  caller: Waiter,
  { look, ...limit }: { look: () => Promise<T | null>; timeMs: number; signal: AbortSignal },
): Promise<T | null> {
  const at = await look();
  if (at !== null || limit.timeMs <= 0) return at;
  const { rootId } = caller;
  const turn = await writeAs(deps, { caller, rootId }, (tx) => changeBlocked(tx, caller, 1));
  try {
    return await until(deps, { rootId, timeoutMs: limit.timeMs, signal: limit.signal }, look);
  } finally {
    if (turn !== null) await unblock(deps, caller, turn);
  }
}

/** Decrements `blocked`, unless another process took over the turn: recovery has already reset it then. */
async function unblock(deps: OperationDeps, caller: Waiter, turn: TurnRecord): Promise<void> {
  await deps.store.write(caller.rootId, processOf(caller), async (tx) => {
    if ((await tx.turns.running(caller.id))?.id === turn.id) await changeBlocked(tx, caller, -1);
  });
}

async function changeBlocked(tx: Tx, { id }: Waiter, by: 1 | -1): Promise<TurnRecord | null> {
  const turn = await tx.turns.running(id);
  if (turn === null) return null;
  await tx.turns.patchRunning(turn.id, turn.fence, { blocked: Math.max(0, turn.blocked + by) });
  // Another session of the node may be waiting until fewer turns run. This wake makes the runner check.
  tx.wake(id);
  return turn;
}
