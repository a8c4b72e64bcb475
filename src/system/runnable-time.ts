import { readFileSync } from "node:fs";

/**
 * Returns how long the calling thread has run or waited for a processor, in milliseconds. Time in which the
 * process is stopped or the machine sleeps does not count. Outside Linux only the running time is known.
 */
export function runnableMs(): number {
  const [runNs, waitNs] = schedule();
  if (runNs !== null) return (runNs + waitNs) / 1e6;
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

function schedule(): [runNs: number, waitNs: number] | [null, null] {
  if (process.platform !== "linux" || isUnsupported) return [null, null];
  try {
    const [run, wait] = readFileSync("/proc/thread-self/schedstat", "latin1").split(" ").map(Number);
    if (run !== undefined && wait !== undefined && run > 0) return [run, wait];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
  // A kernel that lacks these numbers will not get them later.
  isUnsupported = true;
  return [null, null];
}

let isUnsupported = false;
