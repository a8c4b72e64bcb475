import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** A stretch is what the main thread does between two of its ticks; shorter ones are not written down. */
const NOTED_MS = 10;
const TICK_MS = 5;

/**
 * Writes down every long stretch of this process's main thread, in processor time: between two ticks it has
 * answered nobody. The processor's own clock is used, because on a busy machine a wall clock measures others.
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

/** The longest stretch since then, in milliseconds; 0 where none was long. */
export function longestStretch(file: string, since: number): number {
  if (!existsSync(file)) return 0;
  const rows = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((row) => row.split(" ").map(Number));
  return rows.reduce((longest, [at = 0, ms = 0]) => (at >= since ? Math.max(longest, ms) : longest), 0);
}
