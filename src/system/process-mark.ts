import { hostname, uptime } from "node:os";
import { bootId, isAlive, pidNamespace, startTicks } from "./proc.ts";

/** Which process holds something, told so that another on the same machine can see whether it lives. */
export interface ProcessMark {
  readonly host: string;
  /** Machine and PID namespace: pids are comparable only where these are equal. */
  readonly place: string;
  readonly pid: number;
  /** Null where the system does not say. */
  readonly start: string | null;
  readonly since: number;
}

export function ownMark(): ProcessMark {
  return {
    host: hostname(),
    place: place(),
    pid: process.pid,
    start: startOf(process.pid),
    since: Date.now(),
  };
}

/** True only where it is certain: it runs on this machine, in this namespace, and is the same process. */
export function isHere(mark: ProcessMark): boolean {
  return mark.host === hostname() && mark.place === place() && !isGone(mark);
}

/** True only where it is certain: same machine, same namespace, and no such process any more. */
export function isGone(mark: ProcessMark): boolean {
  if (mark.host !== hostname() || mark.place !== place()) return false;
  if (!isAlive(mark.pid)) return true;
  return mark.start !== null && startOf(mark.pid) !== mark.start;
}

/** Changes when the machine starts anew. Where the system has no name for it: when it started, to ten minutes. */
export function machineBoot(): string {
  // Without a boot id, a rounding that falls the other way next time costs clients one snapshot.
  return bootId() ?? String(Math.round((Date.now() - uptime() * 1_000) / 600_000));
}

/** Systems without namespaces have one place per machine. */
function place(): string {
  const namespace = pidNamespace();
  return namespace === null ? machineBoot() : `${machineBoot()} ${namespace}`;
}

/** In clock ticks since the machine started; null for a process that has ended. */
function startOf(pid: number): string | null {
  return startTicks(pid)?.toString() ?? null;
}
