import type { DaemonFile } from "../../config/daemon-file.ts";
import { isAlive } from "../../system/proc.ts";
import { processStart } from "../../system/process-start.ts";

/**
 * Returns whether the recorded pid may still be the daemon: the process is alive and nothing proves that it
 * is another one.
 */
export function mayRun(daemon: DaemonFile): boolean {
  return isAlive(daemon.pid) && !isAnother(daemon);
}

/**
 * Returns whether the recorded pid is certainly the daemon: its process started at the recorded moment. A
 * command line proves nothing, because any program may run in a folder called kinfold.
 */
export function isProvenDaemon(daemon: DaemonFile): boolean {
  return daemon.processStart !== null && daemon.processStart === processStart(daemon.pid);
}

function isAnother(daemon: DaemonFile): boolean {
  return daemon.processStart !== null && daemon.processStart !== processStart(daemon.pid);
}

/** Resolves to true as soon as the process is gone, to false after `timeoutMs`. */
export async function waitUntilGone(pid: number, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (isAlive(pid)) {
    if (Date.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return true;
}
