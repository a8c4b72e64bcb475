import type { DaemonFile } from "../../config/daemon-file.ts";
import { isAlive } from "../../system/proc.ts";
import { processStart } from "../../system/process-start.ts";

/** True if the process is alive and may be the daemon: its start time matches, or none was recorded. */
export function mayRun(daemon: DaemonFile): boolean {
  return isAlive(daemon.pid) && !isAnother(daemon);
}

/** True if the process has the recorded start time. The command line is not compared: anyone can copy it. */
export function isProvenDaemon(daemon: DaemonFile): boolean {
  return daemon.processStart !== null && daemon.processStart === processStart(daemon.pid);
}

function isAnother(daemon: DaemonFile): boolean {
  return daemon.processStart !== null && daemon.processStart !== processStart(daemon.pid);
}

/** Resolves to true as soon as the process is gone, or to false after `timeoutMs`. */
export async function waitUntilGone(pid: number, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (isAlive(pid)) {
    if (Date.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return true;
}
