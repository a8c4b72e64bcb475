import { readFileSync } from "node:fs";

/**
 * How long the calling thread has run or has waited for a processor, in milliseconds since it began. It does not
 * grow while the process is stopped or the machine sleeps, and it does while the thread is busy, also on a machine
 * that gives it little time. Where the system does not tell the waiting (all but Linux), the running alone.
 */
export function runnableMs(): number {
  const [runNs, waitNs] = schedule();
  if (runNs !== null) return (runNs + waitNs) / 1e6;
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** Time on a processor and time in its queue; null where they are not told. */
function schedule(): [runNs: number, waitNs: number] | [null, null] {
  if (process.platform !== "linux" || isUntold) return [null, null];
  try {
    const [run, wait] = readFileSync("/proc/thread-self/schedstat", "latin1").split(" ").map(Number);
    if (run !== undefined && wait !== undefined && run > 0) return [run, wait];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === undefined) throw error;
  }
  // A kernel without these numbers does not get them later.
  isUntold = true;
  return [null, null];
}

let isUntold = false;
