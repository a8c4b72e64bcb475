import { appendFileSync, existsSync, readFileSync } from "node:fs";

/**
 * A stretch is the work of the main thread between two ticks. Stretches shorter than this are not recorded.
 */
const NOTED_MS = 10;
const TICK_MS = 5;

/**
 * Records every long stretch of this process's main thread, during which it answered no request. Measures
 * processor time, because on a busy machine the wall clock includes other processes.
 */
export function noteStretches(file: string): void {
  let before = process.threadCpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    const ms = (user + system) / 1000;
    if (ms >= NOTED_MS) appendFileSync(file, `${Date.now()} ${ms}\n`);
  }, TICK_MS);
  timer.unref();
}

/** Returns the longest stretch recorded after the time `since`, in milliseconds; 0 if there is none. */
export function longestStretch(file: string, since: number): number {
  if (!existsSync(file)) return 0;
  const rows = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((row) => row.split(" ").map(Number));
  return rows.reduce((longest, [at = 0, ms = 0]) => (at >= since ? Math.max(longest, ms) : longest), 0);
}
