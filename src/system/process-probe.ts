import { readdir, readFile } from "node:fs/promises";
import {
  hasProc,
  isAlive,
  listPids,
  openLinks,
  pidNamespace,
  readStat,
  startText,
  startTicks,
} from "./proc.ts";
import { startedAt } from "./process-table.ts";

/** Reads facts about processes. Never sends them a signal. */
export interface ProcessProbe {
  /**
   * The process's start time in the system's own unit (field 22 of `stat` on Linux). Null if there is no such
   * process, undefined if the system does not report start times.
   */
  startOf(pid: number): string | null | undefined;
  /**
   * The process's start in milliseconds since 1970, at most two seconds too early. Absent or null if the
   * system does not report it.
   */
  startedAt?(pid: number): number | null;
  /** This process's PID namespace, for example `pid:[4026531836]`; null if there is none. */
  space(): string | null;
  /** Whether a process with this pid exists, whoever owns it. */
  exists(pid: number): boolean;
  /**
   * Returns, for each of these files, the pid of a process that has it open for writing. Processes that only
   * read a file do not count. Empty if the system does not report open files.
   */
  holders(paths: ReadonlySet<string>): Promise<ReadonlyMap<string, number>>;
  /**
   * Whether we can see the open files of every process whose name contains this word. If so, a file missing
   * from `holders` is not open for writing in any of these processes. Absent if we cannot tell.
   */
  shows?(word: string): Promise<boolean>;
}

export const systemProbe: ProcessProbe = {
  startOf,
  startedAt: startTimeOf,
  space: pidNamespace,
  exists: isAlive,
  holders,
  shows,
};

function startOf(pid: number): string | null | undefined {
  if (!hasProc()) return isAlive(pid) ? undefined : null;
  return startText(pid);
}

/** Subtracts a second, so that a clock adjustment does not make the start too late. */
function startTimeOf(pid: number): number | null {
  const start = startTicks(pid);
  return start === null ? null : startedAt(start) - 1000;
}

async function holders(paths: ReadonlySet<string>): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  if (paths.size === 0) return found;
  for (const pid of listPids()) {
    if (pid === process.pid) continue;
    for (const [path, number] of await openLinks(pid)) {
      if (paths.has(path) && (await isWritten(pid, number))) found.set(path, pid);
    }
  }
  return found;
}

/** The machine's initial PID namespace, in which the processes of all namespaces are visible. */
const FIRST_SPACE = "pid:[4026531836]";

async function shows(word: string): Promise<boolean> {
  if (pidNamespace() !== FIRST_SPACE) return false;
  for (const pid of listPids()) {
    if (readStat(pid)?.name.toLowerCase().includes(word) !== true) continue;
    // True if the process belongs to another user or has made itself unreadable.
    const isHidden = await readdir(`/proc/${pid}/fd`).then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === "EACCES" || error.code === "EPERM",
    );
    if (isHidden) return false;
  }
  return true;
}

/** The last two bits of the flags are the access mode: 1 for writing, 2 for reading and writing. */
async function isWritten(pid: number, number: string): Promise<boolean> {
  // Empty if the file was closed in the meantime.
  const info = await readFile(`/proc/${pid}/fdinfo/${number}`, "latin1").catch(() => "");
  const flags = /^flags:\s*([0-7]+)$/mu.exec(info)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 0;
}
