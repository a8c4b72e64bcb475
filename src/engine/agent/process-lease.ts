import { hashOf, newId, newSecret } from "../../system/id.ts";
import { NEW_TOKEN } from "../../store/port/new-session.ts";
import type { ProcessFence, SessionRecord, Tx, TurnRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";

/** The right of one agent process to its session: what it is started with, and what its writes are fenced with. */
export interface ProcessLease extends ProcessFence {
  readonly id: string;
  /** The token of this process; null where the process runs already. */
  readonly token: string | null;
}

/** The fence of the process that runs a turn. */
export function fenceOf({ sessionId, fence }: Pick<TurnRecord, "sessionId" | "fence">): ProcessFence {
  return { session: sessionId, fence };
}

/** A new lease with the next fence and a token of its own: from its commit on, every older process is late. */
export async function newProcessLease(
  deps: EngineDeps,
  tx: Tx,
  session: SessionRecord,
): Promise<ProcessLease> {
  const now = deps.now();
  const fence = session.fence + 1;
  const lease = { id: newId(), session: session.id, fence, token: newSecret("kfs") };
  session.fence = fence;
  await tx.sessions.patch(session.id, { fence });
  await tx.tokens.revokeOfSession(session.id, now);
  await tx.leases.put({
    id: lease.id,
    sessionId: session.id,
    node: deps.store.node,
    boot: deps.store.boot,
    fence,
    pid: null,
    startTime: null,
    descendants: [],
    openedAt: now,
  });
  await tx.tokens.add({
    hash: hashOf(lease.token),
    kind: "session",
    sessionId: session.id,
    rootId: session.rootId,
    fence,
    name: session.name ?? session.shortId,
    createdAt: now,
    ...NEW_TOKEN,
  });
  return lease;
}
