import type { LeftProcess } from "../../domain/slot.ts";
import type { EngineDeps } from "../deps.ts";
import { retryWrite } from "../retry-write.ts";
import type { AgentSlot, Runtime } from "./slot.ts";
import { giveBackLease, stopAgent } from "./start.ts";

const CUT_MS = 250;

/**
 * How often an idle slot is checked while its round is open: the session waits for children or works in the
 * background.
 */
const OPEN_MS = 1_000;

/**
 * Returns how much longer an idle process is kept in case more work comes, in milliseconds. The time starts
 * when the round closes.
 */
export async function idleLeftMs(deps: EngineDeps, sessionId: string): Promise<number> {
  const { store, config, now, log } = deps;
  const waitMs = Math.max(config.idleMs, OPEN_MS);
  try {
    const session = await store.read.sessions.byId(sessionId);
    if (session?.roundOpen === true) return waitMs;
    const closedAt = session?.roundClosedAt ?? 0;
    return Math.min(waitMs, closedAt + config.idleMs - now());
  } catch (error) {
    log.warn({ err: error, sessionId }, "checking an idle session failed; retrying");
    return waitMs;
  }
}

/** Ends a slot's process and gives its lease back. Returns the processes that could not be stopped. */
export async function endProcess(runtime: Runtime, slot: AgentSlot): Promise<readonly LeftProcess[]> {
  const { deps } = runtime;
  const { session, lease } = slot;
  let left: readonly LeftProcess[] = [];
  try {
    left = await cutStart(runtime, slot);
    const { agent } = slot;
    if (agent !== null) left = await stopAgent(agent, agent.hasExited ? 0 : deps.config.cancelGraceMs);
    const isWanted = (): boolean => !runtime.isStopping && !runtime.isHalted;
    const end = { session, lease, left, hasRun: agent !== null };
    // Until the lease is given back, its token is valid and the caller that cancelled the session gets no
    // report.
    await retryWrite(deps, () => giveBackLease(deps, end), isWanted);
  } catch (error) {
    // The lease stays in the store for the next recovery; the slot must still be released.
    deps.log.error(
      { err: error, sessionId: session.id },
      "giving back a process lease failed; left to the next recovery",
    );
  }
  return left;
}

/**
 * An agent that is still starting cannot be asked to stop, so its processes are found by the lease's marker
 * and killed.
 */
async function cutStart(runtime: Runtime, { starting, lease }: AgentSlot): Promise<readonly LeftProcess[]> {
  let left: readonly LeftProcess[] = [];
  let isDone = starting === null;
  const mark = (): boolean => (isDone = true);
  const done = starting?.then(mark, mark);
  while (!isDone) {
    ({ left } = await runtime.deps.reaper.reap([lease.id]));
    await Promise.race([done, new Promise((resolve) => setTimeout(resolve, CUT_MS))]);
  }
  return left;
}
