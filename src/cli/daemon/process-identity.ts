import { readFileSync } from "node:fs";
import type { DaemonFile } from "../../config/daemon-file.ts";
import { processStart } from "../../system/process-start.ts";

/** Whether a process of this pid works, be it ours or not. One that has ended and was not collected does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  return !isZombie(pid);
}

/**
 * Whether the recorded pid may still be the recorded daemon: the process is alive and nothing proves
 * that it is another one.
 */
export function mayRun(daemon: DaemonFile): boolean {
  return isAlive(daemon.pid) && !isAnother(daemon);
}

/**
 * Whether the recorded pid is proven to be the recorded daemon: the process with this pid started at the
 * recorded moment. What its command line says proves nothing, since any program may run in a folder
 * that is called kinfold.
 */
export function isProvenDaemon(daemon: DaemonFile): boolean {
  return daemon.processStart !== null && daemon.processStart === processStart(daemon.pid);
}

function isAnother(daemon: DaemonFile): boolean {
  return daemon.processStart !== null && daemon.processStart !== processStart(daemon.pid);
}

/** Resolves to true as soon as the process is gone, to false when the time is up. */
export async function waitUntilGone(pid: number, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  while (isAlive(pid)) {
    if (Date.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return true;
}

/** Known on Linux only; elsewhere whoever started the process collects it. One that is gone by now counts too. */
function isZombie(pid: number): boolean {
  if (process.platform !== "linux") return false;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT";
  }
}
