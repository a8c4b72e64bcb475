import { execFile } from "node:child_process";
import { uptime } from "node:os";
import { basename } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import { promisify } from "node:util";
import { hasProc, listPids, type ProcStat, readProcFile, readStat, TICKS_PER_SECOND } from "./proc.ts";
import { MARKER, type ProcessIdentity } from "./process.ts";
import { sharedRun } from "./shared-run.ts";

/** One process. Zombies are left out of every table. */
export interface ProcessRow {
  readonly pid: number;
  readonly parentPid: number;
  /** The pid of the leader of the process's POSIX session; 0 if the system does not report it. */
  readonly leaderPid: number;
  readonly startTime: number;
  readonly name: string;
  /** The value of our marker in the environment; null if there is none or we may not read it. */
  readonly leaseId: string | null;
}

export type ProcessTable = ReadonlyMap<number, ProcessRow>;

/** Scans all processes. Callers share scans, but each caller gets a scan that began after its call. */
export const scanProcesses = sharedRun(() => (hasProc() ? scanProc(true) : scanByPs()));

/** Scans all processes without their markers. This is much cheaper, because no environment is read. */
export const scanParents = sharedRun(() => (hasProc() ? scanProc(false) : scanByPs()));

/** Reads the environment anew, because a process can clear it and keep its pid. */
export function hasMarker(pid: number, leaseId: string): boolean {
  return readMarker(pid) === leaseId;
}

/** Null if the process has ended or is a zombie. */
export function readProcess(pid: number): ProcessRow | null {
  return rowOf(pid, readStat(pid));
}

/** Whether a known process is still alive. Always true without /proc, where the check is expensive. */
export function isSameAlive(known: ProcessIdentity): boolean {
  if (!hasProc()) return true;
  const row = readProcess(known.pid);
  return row !== null && isSame(row, known);
}

/** Whether the row is the known process itself, not a later process that reuses its pid. */
export function isSame(row: ProcessRow, known: ProcessIdentity): boolean {
  return known.startTime === null || row.startTime === known.startTime;
}

/** Describes a process by its program, not by its arguments, which may contain secrets. */
export function identify(row: ProcessRow): ProcessIdentity {
  return { pid: row.pid, startTime: row.startTime, command: commandOf(row) };
}

/** Converts a start time to milliseconds since 1970. */
export function startedAt(startTime: number): number {
  if (!hasProc()) return startTime * 1000;
  return Date.now() - uptime() * 1000 + (startTime * 1000) / TICKS_PER_SECOND;
}

/** Scans with `ps`, for systems without /proc. Exported for a test on systems that have both. */
export async function scanByPs(): Promise<ProcessTable> {
  const run = promisify(execFile);
  const options = { maxBuffer: 64 * 1024 * 1024, env: { ...process.env, LC_ALL: "C" } };
  const [list, environments] = await Promise.all([
    run("ps", ["axo", "pid=,ppid=,stat=,lstart=,comm="], options),
    run("ps", ["axeww", "-o", "pid=,command="], options),
  ]);
  const leases = new Map<number, string>();
  for (const line of environments.stdout.split("\n")) {
    const match = PS_MARKER.exec(line);
    if (match) leases.set(Number(match[1]), match[2] as string);
  }
  const table = new Map<number, ProcessRow>();
  for (const line of list.stdout.split("\n")) {
    const match = PS_ROW.exec(line);
    if (!match || match[3]?.startsWith("Z")) continue;
    const pid = Number(match[1]);
    table.set(pid, {
      pid,
      parentPid: Number(match[2]),
      leaderPid: 0,
      startTime: Date.parse(match[4] as string) / 1000,
      name: basename(match[5] as string),
      leaseId: leases.get(pid) ?? null,
    });
  }
  return table;
}

const PS_MARKER = new RegExp(String.raw`^\s*(\d+)\s.*\s${MARKER}=(\S+)`);
const PS_ROW = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\w{3}\s+\w{3}\s+\d+\s+[\d:]+\s+\d{4})\s+(.+)$/;
const SLICE = 128;

/** Scans in slices, so that thousands of processes do not block the event loop. */
async function scanProc(withMarkers: boolean): Promise<ProcessTable> {
  const table = new Map<number, ProcessRow>();
  const pids = listPids();
  for (const [index, pid] of pids.entries()) {
    if (index % SLICE === SLICE - 1) await nextTick();
    const stat = readStat(pid);
    const row = rowOf(pid, stat);
    if (row === null) continue;
    const leaseId = withMarkers && !stat?.isKernel ? readMarker(pid) : null;
    table.set(pid, { ...row, leaseId });
  }
  return table;
}

/** Null if the process has ended or is a zombie. */
function rowOf(pid: number, stat: ProcStat | null): ProcessRow | null {
  if (stat === null || stat.hasEnded) return null;
  const { parentPid, leaderPid, startTime, name } = stat;
  return { pid, parentPid, leaderPid, startTime, name, leaseId: null };
}

const MARKER_BYTES = Buffer.from(`${MARKER}=`);

function readMarker(pid: number): string | null {
  const environment = readProcFile(pid, "environ");
  return environment === null ? null : markerIn(environment);
}

/** Returns the marker's value in an environment as the kernel formats it. */
export function markerIn(environment: Buffer): string | null {
  let at = environment.indexOf(MARKER_BYTES);
  while (at > 0 && environment[at - 1] !== 0) at = environment.indexOf(MARKER_BYTES, at + 1);
  if (at < 0) return null;
  const from = at + MARKER_BYTES.length;
  const end = environment.indexOf(0, from);
  return environment.toString("latin1", from, end < 0 ? undefined : end);
}

function commandOf(row: ProcessRow): string {
  const words = readProcFile(row.pid, "cmdline")?.toString("utf8").split("\0") ?? [];
  const program = words[0] ? basename(words[0]) : row.name;
  const script = words[1] && /^[^-].*\.\w+$/.test(words[1]) ? ` ${basename(words[1])}` : "";
  return `${program}${script}`.slice(0, 100);
}
