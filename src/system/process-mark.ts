import { readFileSync, readlinkSync } from "node:fs";
import { hostname, uptime } from "node:os";

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

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Changes when the machine starts anew. Where the system has no name for it: when it started, to ten minutes. */
export function machineBoot(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // Not Linux. A rounding that falls the other way next time costs clients one snapshot.
    return String(Math.round((Date.now() - uptime() * 1_000) / 600_000));
  }
}

function place(): string {
  try {
    return `${machineBoot()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    // Systems without namespaces have one place per machine.
    return machineBoot();
  }
}

/** In clock ticks since the machine started. A zombie has ended: it counts as another process. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? "ended" : (fields[19] ?? null);
  } catch {
    // No such file system, or the process has just gone.
    return null;
  }
}
