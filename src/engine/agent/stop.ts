import type { LeftProcess } from "../../domain/slot.ts";
import type { EngineDeps } from "../deps.ts";
import { retryWrite } from "../retry-write.ts";
import type { AgentSlot, Runtime } from "./slot.ts";
import { giveBackLease } from "./start.ts";

const CUT_MS = 250;

/** Minimum interval between checks of an idle slot whose session waits for children or background work. */
const OPEN_MS = 1_000;

/** Returns for how many more milliseconds an idle process is kept. The time starts when the round closes. */
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
    if (agent !== null) ({ left } = await agent.stop(slot.hasExited(agent) ? 0 : deps.config.cancelGraceMs));
    const isWanted = (): boolean => !runtime.isStopping && !runtime.isHalted;
    const end = { session, lease, left, hasRun: agent !== null };
    // Retried: until the lease is given back, its token is valid and the caller of a cancel gets no report.
    await retryWrite(deps, () => giveBackLease(deps, end), isWanted);
  } catch (error) {
    // The lease stays in the store for the next recovery; the slot must still be released.
    const about = { err: error, sessionId: session.id };
    deps.log.error(about, "giving back a process lease failed; left to the next recovery");
  }
  return left;
}

/** Kills a starting agent. No handle exists yet to stop it with, so it is found by its lease's marker. */
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
