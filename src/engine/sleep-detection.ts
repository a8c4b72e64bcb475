/** Clock readings of one beat, in milliseconds. */
export interface Beat {
  readonly wall: number;
  readonly monotonic: number;
  /** Time for which the main thread has run or waited for a processor. */
  readonly runnable: number;
}

/**
 * Returns how long the daemon slept between two beats that should be `beatMs` apart. The machine slept if the
 * wall clock advanced and the monotonic clock did not. The process was suspended if a beat is late although
 * the main thread was neither running nor waiting for a processor. A beat that is late because the thread was
 * busy is a stall, not sleep: deadlines count that time.
 */
export function sleptBetween(before: Beat, after: Beat, beatMs: number): number {
  const passedMs = after.monotonic - before.monotonic;
  const busyMs = Math.max(0, after.runnable - before.runnable);
  const stoppedMs = passedMs - beatMs - busyMs;
  const jumpMs = after.wall - before.wall - passedMs;
  return Math.max(0, stoppedMs, jumpMs);
}
