import { execFile } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { basename } from "node:path";
import { setImmediate as nextTick } from "node:timers/promises";
import { promisify } from "node:util";
import { MARKER, type ProcessIdentity } from "./process.ts";
import { sharedRun } from "./shared-run.ts";

/** One process as the system shows it. Zombies are left out of every table. */
export interface ProcessRow {
  readonly pid: number;
  readonly parentPid: number;
  /** The pid of its session's leader; 0 where the system does not tell. */
  readonly leaderPid: number;
  readonly startTime: number;
  readonly name: string;
  /** The value of our marker in its environment, if it has one that we may read. */
  readonly leaseId: string | null;
}

export type ProcessTable = ReadonlyMap<number, ProcessRow>;

/** Scans all processes. Callers share scans, and each gets one that began after it asked. */
export const scanProcesses = sharedRun(() => (hasProc() ? scanProc(true) : scanByPs()));

/** All processes without their markers: much cheaper, because no environment is read. */
export const scanParents = sharedRun(() => (hasProc() ? scanProc(false) : scanByPs()));

/** Whether this process carries this lease's marker now: a program keeps its pid when it drops its environment. */
export function hasMarker(pid: number, leaseId: string): boolean {
  return hasProc() && readMarker(pid) === leaseId;
}

/** Names this run of the machine: pids and start times mean nothing in another one. Null where it has no name. */
export function machineBoot(): string | null {
  if (!hasProc()) return null;
  boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  return boot;
}

/** The process with this pid, unless it is gone or a zombie. */
export function readProcess(pid: number): ProcessRow | null {
  return hasProc() ? (readStat(pid)?.row ?? null) : null;
}

/** Whether it is still there and still the same; true where the system does not tell cheaply. */
export function isAlive(known: ProcessIdentity): boolean {
  if (!hasProc()) return true;
  const row = readProcess(known.pid);
  return row !== null && (known.startTime === null || row.startTime === known.startTime);
}

/** Every pid there is at this instant; empty where the system does not list them cheaply. */
export function listPids(): number[] {
  return hasProc() ? procPids() : [];
}

/** How a process is named to people: its program, never its arguments, which may hold secrets. */
export function identify(row: ProcessRow): ProcessIdentity {
  return { pid: row.pid, startTime: row.startTime, command: commandOf(row) };
}

/** Milliseconds since 1970, from a start time of this system. */
export function startedAt(startTime: number): number {
  if (!hasProc()) return startTime * 1000;
  const uptimeMs = Number.parseFloat(readFileSync("/proc/uptime", "latin1")) * 1000;
  return Date.now() - uptimeMs + (startTime * 1000) / TICKS_PER_SECOND;
}

/** Read by `ps`, for systems without /proc; exported so that it is tested where both exist. */
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
/** The kernel shows times to programs in this unit on every architecture that Node runs on. */
const TICKS_PER_SECOND = 100;
const SLICE = 128;

let boot: string | null = null;

/** In slices, so that a machine with thousands of processes does not hold up the event loop. */
async function scanProc(withMarkers: boolean): Promise<ProcessTable> {
  const table = new Map<number, ProcessRow>();
  const pids = procPids();
  for (const [index, pid] of pids.entries()) {
    if (index % SLICE === SLICE - 1) await nextTick();
    const stat = readStat(pid);
    if (stat === null) continue;
    const leaseId = withMarkers && !stat.isKernel ? readMarker(pid) : null;
    table.set(pid, leaseId === null ? stat.row : { ...stat.row, leaseId });
  }
  return table;
}

function procPids(): number[] {
  return readdirSync("/proc").map(Number).filter(Number.isInteger);
}

/** Fields of /proc/<pid>/stat after the name, which stands in brackets and may contain any of them. */
function readStat(pid: number): { row: ProcessRow; isKernel: boolean } | null {
  const text = readProcFile(pid, "stat")?.toString("latin1");
  if (text === undefined) return null;
  const end = text.lastIndexOf(")");
  const fields = text.slice(end + 2).split(" ");
  const state = fields[0];
  if (state === "Z" || state === "X") return null;
  return {
    row: {
      pid,
      parentPid: Number(fields[1]),
      leaderPid: Number(fields[3]),
      startTime: Number(fields[19]),
      name: text.slice(text.indexOf("(") + 1, end),
      leaseId: null,
    },
    isKernel: fields[20] === "0",
  };
}

const MARKER_BYTES = Buffer.from(`${MARKER}=`);

function readMarker(pid: number): string | null {
  const environment = readProcFile(pid, "environ");
  if (environment === null) return null;
  let at = environment.indexOf(MARKER_BYTES);
  while (at > 0 && environment[at - 1] !== 0) at = environment.indexOf(MARKER_BYTES, at + 1);
  if (at < 0) return null;
  const from = at + MARKER_BYTES.length;
  const end = environment.indexOf(0, from);
  return environment.toString("latin1", from, end < 0 ? undefined : end);
}

/** Null when the process has gone, or belongs to someone else: then it is not ours to stop. */
function readProcFile(pid: number, name: string): Buffer | null {
  try {
    return readFileSync(`/proc/${pid}/${name}`);
  } catch {
    return null;
  }
}

function commandOf(row: ProcessRow): string {
  const words = hasProc() ? (readProcFile(row.pid, "cmdline")?.toString("utf8").split("\0") ?? []) : [];
  const program = words[0] ? basename(words[0]) : row.name;
  const script = words[1] && /^[^-].*\.\w+$/.test(words[1]) ? ` ${basename(words[1])}` : "";
  return `${program}${script}`.slice(0, 100);
}

let procSeen: boolean | null = null;

function hasProc(): boolean {
  procSeen ??= existsSync("/proc/self/stat");
  return procSeen;
}
