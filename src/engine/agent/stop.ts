import { giveBackLease, unhost } from "./start.ts";
import { retryWrite } from "../retry-write.ts";
import type { Place, Runtime } from "./slot.ts";

const CUT_MS = 250;

/** How often a place is looked at whose round is open: it waits for children, or works in the background. */
const OPEN_MS = 1_000;

/** The process stays a while after its round, in case more work comes. */
export function goIdle(runtime: Runtime, place: Place): void {
  place.idleSince = performance.now();
  endLater(runtime, place, runtime.deps.config.idleMs);
}

function endLater(runtime: Runtime, place: Place, waitMs: number): void {
  if (place.idleTimer !== null) clearTimeout(place.idleTimer);
  place.idleTimer = setTimeout(() => void endIfIdle(runtime, place), waitMs);
  place.idleTimer.unref();
}

async function endIfIdle(runtime: Runtime, place: Place): Promise<void> {
  const leftMs = await idleLeftMs(runtime, place);
  if (place.idleSince === null || place.recorder !== null || place.isClaimed || place.isEnding) return;
  if (leftMs > 0) endLater(runtime, place, leftMs);
  else await endPlace(runtime, place);
}

/** Its time begins when its round closes. */
async function idleLeftMs(runtime: Runtime, place: Place): Promise<number> {
  const { store, config, now, log } = runtime.deps;
  const waitMs = Math.max(config.idleMs, OPEN_MS);
  try {
    const session = await store.read.sessions.byId(place.session.id);
    if (session?.roundOpen === true) return waitMs;
    const closedAt = session?.roundClosedAt ?? 0;
    return Math.min(waitMs, closedAt + config.idleMs - now());
  } catch (error) {
    log.warn({ err: error, sessionId: place.session.id }, "could not look at an idle session");
    return waitMs;
  }
}

export function leaveIdle(place: Place): void {
  place.idleSince = null;
  if (place.idleTimer !== null) clearTimeout(place.idleTimer);
  place.idleTimer = null;
}

/**
 * Ends the process of a place, in order: asked, given a grace, killed with everything below it.
 * The turn in it, if there is one, settles by itself when its prompt ends.
 */
export function endPlace(runtime: Runtime, place: Place): Promise<void> {
  place.isEnding = true;
  place.ending ??= end(runtime, place);
  return place.ending;
}

async function end(runtime: Runtime, place: Place): Promise<void> {
  const { session } = place;
  leaveIdle(place);
  try {
    await endProcess(runtime, place);
  } catch (error) {
    // The lease stays in the store, where the next recovery finds it; the place must not stay here.
    runtime.deps.log.error({ err: error, sessionId: session.id }, "a lease could not be given back");
  }
  // A turn that has yet to settle keeps its place: without one it would be taken for lost.
  if (place.recorder === null) dropPlace(runtime, place);
  runtime.fill();
}

export function dropPlace(runtime: Runtime, place: Place): void {
  const { id } = place.session;
  if (runtime.places.get(id) === place) runtime.places.delete(id);
}

async function endProcess(runtime: Runtime, place: Place): Promise<void> {
  const { deps } = runtime;
  place.left = await cutStart(runtime, place);
  const { agent, session, hold } = place;
  if (agent !== null) place.left = await unhost(agent, agent.hasExited ? 0 : deps.config.cancelGraceMs);
  place.agent = null;
  const { left } = place;
  const isWanted = (): boolean => !runtime.isStopping && !runtime.isHalted;
  // While its lease stands, its token is alive and whoever cancelled it is not told.
  await retryWrite(
    deps,
    () => giveBackLease(deps, { session, hold, left, hasRun: agent !== null }),
    isWanted,
  );
}

/** An agent that is still starting cannot be asked: its process is ended by its marker. */
async function cutStart(runtime: Runtime, place: Place): Promise<Place["left"]> {
  const { starting } = place;
  let left: Place["left"] = [];
  let isDone = starting === null;
  const mark = (): boolean => (isDone = true);
  const done = starting?.then(mark, mark);
  while (!isDone) {
    ({ left } = await runtime.deps.reaper.reap([place.hold.leaseId]));
    await Promise.race([done, new Promise((resolve) => setTimeout(resolve, CUT_MS))]);
  }
  return left;
}

/** A turn that a caller wants stopped: asked first, and after the grace its process ends. */
export async function stopTurn(runtime: Runtime, place: Place): Promise<void> {
  const { agent, recorder } = place;
  if (place.isStopping || agent === null || recorder === null) return;
  place.isStopping = true;
  agent.handle.cancel();
  const timer = setTimeout(() => {
    if (place.recorder === recorder && place.isStopping) void endPlace(runtime, place);
  }, runtime.deps.config.cancelGraceMs);
  await place.task;
  clearTimeout(timer);
}

/** A turn that breaks in our own code is a bug: it is said, the place ends, and recovery takes the turn up. */
export function follow(runtime: Runtime, place: Place, task: Promise<void>): void {
  place.task = task.catch(async (error: unknown) => {
    runtime.deps.log.error({ err: error, sessionId: place.session.id }, "a turn broke");
    place.recorder = null;
    await endPlace(runtime, place);
    dropPlace(runtime, place);
  });
}
