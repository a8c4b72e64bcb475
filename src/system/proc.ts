import { existsSync, readFileSync, readdirSync, readlinkSync } from "node:fs";
import { readdir, readlink } from "node:fs/promises";

/** One process as `/proc/<pid>/stat` shows it. */
export interface ProcStat {
  readonly parentPid: number;
  /** The pid of the leader of its POSIX session. */
  readonly leaderPid: number;
  /** Clock ticks since boot. */
  readonly startTime: number;
  readonly name: string;
  readonly isKernel: boolean;
  /** True for a zombie: a process that has ended and that its parent has not reaped yet. */
  readonly hasEnded: boolean;
}

/** Clock ticks per second in /proc. The number is the same on every architecture that Node supports. */
export const TICKS_PER_SECOND = 100;

let procSeen: boolean | null = null;

export function hasProc(): boolean {
  procSeen ??= existsSync("/proc/self/stat");
  return procSeen;
}

/** Empty on a system without `/proc`. */
export function listPids(): number[] {
  return hasProc() ? readdirSync("/proc").map(Number).filter(Number.isInteger) : [];
}

/** Null if the process has ended, or the system has no `/proc`. */
export function readStat(pid: number): ProcStat | null {
  const text = readProcFile(pid, "stat")?.toString("latin1");
  if (text === undefined) return null;
  // The name is in parentheses and may itself contain spaces and parentheses.
  const end = text.lastIndexOf(")");
  const fields = text.slice(end + 2).split(" ");
  return {
    parentPid: Number(fields[1]),
    leaderPid: Number(fields[3]),
    startTime: Number(fields[19]),
    name: text.slice(text.indexOf("(") + 1, end),
    isKernel: fields[20] === "0",
    hasEnded: fields[0] === "Z" || fields[0] === "X",
  };
}

/** Returns a process's start in clock ticks since boot; null if it has ended or there is no `/proc`. */
export function startTicks(pid: number): number | null {
  const stat = readStat(pid);
  return stat === null || stat.hasEnded ? null : stat.startTime;
}

export function startText(pid: number): string | null {
  return startTicks(pid)?.toString() ?? null;
}

/** Null if the process has ended or belongs to another user. */
export function readProcFile(pid: number, name: string): Buffer | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`);
  } catch {
    return null;
  }
}

/** Returns the targets of a process's open files and sockets, with the number of each descriptor. */
export async function openLinks(pid: number): Promise<[target: string, number: string][]> {
  const folder = `/proc/${pid}/fd`;
  // Empty if the process has ended or belongs to another user.
  const numbers = await readdir(folder).catch((): string[] => []);
  const links = numbers.map(async (number): Promise<[string, string]> => {
    // Empty if the file was closed in the meantime.
    return [await readlink(`${folder}/${number}`).catch(() => ""), number];
  });
  return Promise.all(links);
}

let boot: string | null = null;

/**
 * Returns the id of the machine's current boot; pids and start times are valid only within one boot. Null if
 * the system has no `/proc`.
 */
export function bootId(): string | null {
  if (!hasProc()) return null;
  boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  return boot;
}

/** Returns, for example, `pid:[4026531836]`; null if the system has no namespaces. */
export function pidNamespace(): string | null {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return null;
  }
}

/** Whether a process with this pid runs, whoever owns it. A zombie does not count as running. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  return readStat(pid)?.hasEnded !== true;
}

/** Signals a process, or its group if the pid is negative. Returns false if the process has ended. */
export function sendSignal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}
