import { hostname, uptime } from "node:os";
import { bootId, isAlive, pidNamespace, startText } from "./proc.ts";

/** Identifies a process, so that another process on the same machine can check whether it is alive. */
export interface ProcessMark {
  readonly host: string;
  /** Boot and PID namespace: pids are comparable only if both are equal. */
  readonly place: string;
  readonly pid: number;
  /** The start time; null if the system does not report it. */
  readonly start: string | null;
  readonly since: number;
}

export function ownMark(): ProcessMark {
  const { pid } = process;
  return { host: hostname(), place: ownPlace(), pid, start: startText(pid), since: Date.now() };
}

/** True if the process is alive in this namespace. Without a start time, a reused pid counts as alive. */
export function isHere(mark: ProcessMark): boolean {
  return isComparable(mark) && !isGone(mark);
}

/** True only if the process has certainly ended. This is known only on its machine and in its namespace. */
export function isGone(mark: ProcessMark): boolean {
  if (!isComparable(mark)) return false;
  if (!isAlive(mark.pid)) return true;
  return mark.start !== null && startText(mark.pid) !== mark.start;
}

function isComparable({ host, place }: ProcessMark): boolean {
  return host === hostname() && place === ownPlace();
}

/** Returns the id of the current boot. Without one, returns the boot time, rounded to ten minutes. */
export function machineBoot(): string {
  // The rounded time may change without a reboot. Clients then fetch one more snapshot; that is harmless.
  return bootId() ?? String(Math.round((Date.now() - uptime() * 1_000) / 600_000));
}

/** Returns the boot and the PID namespace; only the boot if the system has no namespaces. */
function ownPlace(): string {
  const namespace = pidNamespace();
  return namespace === null ? machineBoot() : `${machineBoot()} ${namespace}`;
}
