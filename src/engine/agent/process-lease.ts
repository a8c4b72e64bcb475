import { hashOf, newId, newSecret } from "../../system/id.ts";
import { NEW_TOKEN } from "../../store/port/new-session.ts";
import type { ProcessFence, SessionRecord, TurnRecord, Tx } from "../../store/port/store.ts";
import type { OpenRequest } from "../../drivers/port.ts";
import type { EngineDeps } from "../deps.ts";
import { retryWrite } from "../retry-write.ts";
import type { ProcessIdentity, RememberedProcess } from "../../system/process.ts";

/** The right of one agent process to write for its session until a lease with a higher fence is committed. */
export interface ProcessLease extends ProcessFence {
  readonly id: string;
  readonly token: string;
}

export function fenceOf({ sessionId, fence }: Pick<TurnRecord, "sessionId" | "fence">): ProcessFence {
  return { session: sessionId, fence };
}

/** Makes a lease with the next fence and a new token. Once it is committed, older processes cannot write. */
export async function newProcessLease(
  deps: EngineDeps,
  tx: Tx,
  session: SessionRecord,
): Promise<ProcessLease> {
  const { node, boot } = deps.store;
  const now = deps.now();
  const { id: sessionId, rootId } = session;
  const fence = session.fence + 1;
  const lease = { id: newId(), session: sessionId, fence, token: newSecret("kfs") };
  session.fence = fence;
  await tx.sessions.patch(sessionId, { fence });
  await tx.tokens.revokeOfSession(sessionId, now);
  const unstarted = { pid: null, startTime: null, descendants: [] };
  await tx.leases.put({ id: lease.id, sessionId, node, boot, fence, ...unstarted, openedAt: now });
  const name = session.name ?? session.shortId;
  const token = { hash: hashOf(lease.token), kind: "session", name, createdAt: now, ...NEW_TOKEN } as const;
  await tx.tokens.add({ ...token, sessionId, rootId, fence });
  return lease;
}

/** Removes a lease. If processes could not be stopped, the lease's row stays and lists them. */
export async function closeLease(
  tx: Tx,
  { session, fence }: ProcessFence,
  left: readonly ProcessIdentity[],
): Promise<void> {
  const descendants = left.map((each) => ({ ...each }));
  if (left.length === 0) await tx.leases.remove(session, fence);
  else await tx.leases.patch(session, fence, { pid: null, descendants });
}

interface Order {
  readonly session: SessionRecord;
  readonly lease: ProcessLease;
  readonly isWanted: () => boolean;
}

/** Returns functions that start an agent's process under its tree's lock and record it in the lease's row. */
export function leaseRow(
  deps: EngineDeps,
  order: Order,
): Required<Pick<OpenRequest, "admitProcess" | "onUnmarked">> {
  let remembered: Promise<void> = Promise.resolve();
  return {
    async admitProcess(start) {
      deps.reached("process.starting");
      return retryWrite(deps, () => startIn(deps, order, start), order.isWanted);
    },
    onUnmarked(processes) {
      // Writes run one after another; otherwise an older list could replace a newer one.
      remembered = remembered
        .then(() => rememberProcesses(deps, order, processes))
        .catch((error: unknown) => {
          const { id: sessionId } = order.session;
          deps.log.error({ err: error, sessionId }, "storing the processes of an agent failed");
        });
    },
  };
}

/**
 * Starts the process inside a transaction. A cancel that committed earlier prevents the start; a later cancel
 * finds the pid in the lease's row. If the daemon dies during the transaction, the next daemon finds the
 * process by the lease's marker.
 */
async function startIn(
  deps: EngineDeps,
  { session, lease, isWanted }: Order,
  start: () => ProcessIdentity | null,
): Promise<boolean> {
  const isStarted = await deps.store.write(session.rootId, lease, async (tx) => {
    const fresh = await tx.sessions.byId(session.id);
    if (fresh === null || fresh.endedAt !== null || !isWanted()) return false;
    const process = start();
    if (process === null) return true;
    const { pid, startTime } = process;
    await tx.leases.patch(session.id, lease.fence, { pid, startTime });
    const data = { pid, leaseId: lease.id };
    tx.append({ sessionId: session.id, type: "agent.started", data, at: deps.now() });
    return true;
  });
  return isStarted === true;
}

/**
 * Records the agent's descendant processes, so that the next daemon finds them. Does nothing once the process
 * has ended, because the row then lists the processes that could not be stopped.
 */
async function rememberProcesses(
  deps: EngineDeps,
  { session, lease }: Order,
  processes: readonly RememberedProcess[],
): Promise<void> {
  await deps.store.write(session.rootId, lease, async (tx) => {
    const row = await tx.leases.bySession(session.id);
    if (row === null || row.id !== lease.id || row.pid === null) return;
    await tx.leases.patch(session.id, lease.fence, { descendants: processes.map((each) => ({ ...each })) });
  });
}
