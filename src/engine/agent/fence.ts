import type { ProcessFence, TurnRecord } from "../../store/port/store.ts";

/** The fence of the process that runs a turn. */
export function fenceOf({ sessionId, fence }: Pick<TurnRecord, "sessionId" | "fence">): ProcessFence {
  return { session: sessionId, fence };
}
