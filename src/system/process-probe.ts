import { readdir, readFile, readlink } from "node:fs/promises";
import { hasProc, isAlive, listPids, pidNamespace, readStat, startTicks } from "./proc.ts";
import { startedAt } from "./process-table.ts";

/** What the system says about processes. Nothing is ever sent to one of them. */
export interface ProcessProbe {
  /**
   * When the process with this pid was started, as the system counts it (field 22 of its `stat` on
   * Linux), or null when there is none. `undefined` where the system does not say.
   */
  startOf(pid: number): string | null | undefined;
  /** The same as a time, at most two seconds too early. Null or absent where the system does not say. */
  startedAt?(pid: number): number | null;
  /** The name of the space our pids are counted in (`pid:[4026531836]`); null where there is none. */
  space(): string | null;
  /** Whether there is a process with this pid, whoever it is. */
  exists(pid: number): boolean;
  /**
   * For each of these files that a process holds open for writing, its pid: who only reads does not work
   * on it. Empty where the system does not say.
   */
  holders(paths: ReadonlySet<string>): Promise<ReadonlyMap<string, number>>;
  /**
   * Whether every process of this machine whose name has this word shows which files it holds, so that
   * one that `holders` does not name holds none. Absent: it is not known.
   */
  shows?(word: string): Promise<boolean>;
}

/** The machine's own processes. */
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
  return startTicks(pid)?.toString() ?? null;
}

/** A second earlier than it is computed, so that a change of the clock does not make it too late. */
function startTimeOf(pid: number): number | null {
  const start = startTicks(pid);
  return start === null ? null : startedAt(start) - 1000;
}

async function holders(paths: ReadonlySet<string>): Promise<ReadonlyMap<string, number>> {
  const found = new Map<string, number>();
  if (paths.size === 0) return found;
  for (const pid of listPids()) {
    if (pid === process.pid) continue;
    for (const [path, number] of await openFiles(pid)) {
      if (paths.has(path) && (await isWritten(pid, number))) found.set(path, pid);
    }
  }
  return found;
}

/** The first space of pids there is, in which those of all others are seen too. */
const FIRST_SPACE = "pid:[4026531836]";

async function shows(word: string): Promise<boolean> {
  if (pidNamespace() !== FIRST_SPACE) return false;
  for (const pid of listPids()) {
    if (readStat(pid)?.name.toLowerCase().includes(word) !== true) continue;
    // A process of someone else, or one that keeps others from looking into it.
    const isHidden = await readdir(`/proc/${pid}/fd`).then(
      () => false,
      (error: NodeJS.ErrnoException) => error.code === "EACCES" || error.code === "EPERM",
    );
    if (isHidden) return false;
  }
  return true;
}

/** A process of someone else, or one that has just gone, shows nothing. */
async function openFiles(pid: number): Promise<[path: string, number: string][]> {
  const folder = `/proc/${pid}/fd`;
  // The process has ended, or belongs to another user.
  const numbers = await readdir(folder).catch((): string[] => []);
  const links = numbers.map(async (number): Promise<[string, string]> => {
    // The file was closed in the meantime.
    return [await readlink(`${folder}/${number}`).catch(() => ""), number];
  });
  return (await Promise.all(links)).filter(([path]) => path.startsWith("/"));
}

/** The last two bits of the flags say how a file was opened: 1 to write, 2 to do both. */
async function isWritten(pid: number, number: string): Promise<boolean> {
  // The file was closed in the meantime.
  const info = await readFile(`/proc/${pid}/fdinfo/${number}`, "latin1").catch(() => "");
  const flags = /^flags:\s*([0-7]+)$/mu.exec(info)?.[1];
  return flags !== undefined && (Number.parseInt(flags, 8) & 3) !== 0;
}
