/** What the clocks said at one beat, in milliseconds. */
export interface Beat {
  readonly wall: number;
  readonly monotonic: number;
  /** How long the main thread has run or waited for a processor. */
  readonly runnable: number;
}

/**
 * How long the daemon slept between two beats that should be `beatMs` apart. The machine sleeps when the wall clock
 * goes on and the monotonic one does not; the process is stopped when a beat comes late although the main thread
 * had nothing to do and no processor to wait for. A beat that is late because the thread was busy is a stall: it
 * passed awake, and deadlines count it.
 */
export function sleptBetween(before: Beat, after: Beat, beatMs: number): number {
  const passedMs = after.monotonic - before.monotonic;
  const busyMs = Math.max(0, after.runnable - before.runnable);
  const stoppedMs = passedMs - beatMs - busyMs;
  const jumpMs = after.wall - before.wall - passedMs;
  return Math.max(0, stoppedMs, jumpMs);
}
