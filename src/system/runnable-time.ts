import { readFileSync } from "node:fs";

/**
 * Returns how long the calling thread has run or waited for a processor since it began, in milliseconds. The
 * value does not grow while the process is stopped or the machine sleeps. It grows while the thread is busy,
 * even if the machine gives it little time. Without data about the waiting (everywhere but Linux), counts the
 * running only.
 */
export function runnableMs(): number {
  const [runNs, waitNs] = schedule();
  if (runNs !== null) return (runNs + waitNs) / 1e6;
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Returns the time on a processor and the time waiting for one; null if the system does not report them. */
function schedule(): [runNs: number, waitNs: number] | [null, null] {
  if (process.platform !== "linux" || isUntold) return [null, null];
  try {
    const [run, wait] = readFileSync("/proc/thread-self/schedstat", "latin1").split(" ").map(Number);
    if (run !== undefined && wait !== undefined && run > 0) return [run, wait];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
  // A kernel that lacks these numbers will not get them later.
  isUntold = true;
  return [null, null];
}

let isUntold = false;
