import { hashOf, newId, newSecret } from "../../system/id.ts";
import { NEW_TOKEN } from "../../store/port/new-session.ts";
import type { ProcessFence, SessionRecord, TurnRecord, Tx } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";
import { retryWrite } from "../retry-write.ts";
import type { ProcessIdentity, RememberedProcess } from "../../system/process.ts";

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

interface Order {
  readonly session: SessionRecord;
  readonly lease: ProcessLease;
  readonly isWanted: () => boolean;
}

/** Starts an agent's processes under the lock of their session, and keeps them in the row of their lease. */
export interface LeaseRow {
  /** As in `OpenRequest`. */
  admitProcess(start: () => ProcessIdentity | null): Promise<boolean>;
  onUnmarked(processes: readonly RememberedProcess[]): void;
}

export function leaseRow(deps: EngineDeps, order: Order): LeaseRow {
  let remembered: Promise<void> = Promise.resolve();
  return {
    async admitProcess(start) {
      deps.reached("process.starting");
      return retryWrite(deps, () => startIn(deps, order, start), order.isWanted);
    },
    onUnmarked(processes) {
      // One after another, or an older list could replace a newer one.
      remembered = remembered
        .then(() => rememberProcesses(deps, order, processes))
        .catch((error: unknown) => {
          const { id: sessionId } = order.session;
          deps.log.error({ err: error, sessionId }, "could not store the processes of an agent");
        });
    },
  };
}

/**
 * A cancel either comes before this transaction, which then starts nothing, or after it, and finds a process
 * whose pid it can see. A daemon that dies inside it leaves a process that carries the lease's marker.
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
    tx.append({ sessionId: session.id, type: "agent.started", text: null, data, at: deps.now() });
    return true;
  });
  return isStarted === true;
}

/** So that the next daemon finds them; not after the process has ended, when the row says what is left. */
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
