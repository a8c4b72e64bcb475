import type { ProcessIdentity, RememberedProcess } from "../drivers/port.ts";
import type { SessionRecord } from "../store/port.ts";
import type { Hold } from "./claim.ts";
import type { EngineDeps } from "./deps.ts";
import { insist } from "./insist.ts";

interface Order {
  readonly session: SessionRecord;
  readonly hold: Hold;
  readonly isWanted: () => boolean;
}

/** What is written of an agent's processes into the row of its lease, while its driver works. */
export interface LeaseRow {
  onProcess(process: ProcessIdentity): void;
  onUnmarked(processes: readonly RememberedProcess[]): void;
  /** Why a process could not be written down; null where all of them were. */
  failure(): Promise<Error | null>;
}

export function leaseRow(deps: EngineDeps, order: Order): LeaseRow {
  const noted: Promise<Error | null>[] = [];
  let remembered: Promise<void> = Promise.resolve();
  return {
    onProcess(process) {
      const note = insist(deps, () => noteProcess(deps, order, process), order.isWanted);
      // Its failure is looked at when the agent is open: until then nobody awaits it.
      noted.push(note.then(() => null, asError));
    },
    onUnmarked(processes) {
      // One after another and after the process itself, or an older list could replace a newer one.
      remembered = Promise.all([remembered, ...noted])
        .then(() => rememberProcesses(deps, order, processes))
        .catch((error: unknown) => {
          const { id: sessionId } = order.session;
          deps.log.error({ err: error, sessionId }, "could not store the processes of an agent");
        });
    },
    async failure() {
      return (await Promise.all(noted)).find((error) => error !== null) ?? null;
    },
  };
}

async function noteProcess(
  deps: EngineDeps,
  { session, hold }: Order,
  { pid, startTime }: ProcessIdentity,
): Promise<void> {
  await deps.store.write(session.rootId, async (tx) => {
    await tx.leases.patch(session.id, hold.fence, { pid, startTime });
    const data = { pid, leaseId: hold.leaseId };
    tx.append({ sessionId: session.id, type: "agent.started", text: null, data, at: deps.now() });
  });
}

/** So that the next daemon finds them; not after the process has ended, when the row says what is left. */
async function rememberProcesses(
  deps: EngineDeps,
  { session, hold }: Order,
  processes: readonly RememberedProcess[],
): Promise<void> {
  await deps.store.write(session.rootId, async (tx) => {
    const lease = await tx.leases.bySession(session.id);
    if (lease === null || lease.id !== hold.leaseId || lease.pid === null) return;
    await tx.leases.patch(session.id, hold.fence, { descendants: processes.map((each) => ({ ...each })) });
  });
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
