import { readFile, readdir, readlink } from "node:fs/promises";
import { isIP } from "node:net";
import type { IsAgentPeer } from "./auth.ts";

export interface PeerOptions {
  /** False while no agent of ours runs: then nothing needs to be looked up. */
  readonly hasAgents?: () => boolean;
  /** Processes of agents that neither carry the marker nor descend from one that does. */
  readonly remembered?: () => Promise<ReadonlySet<number>>;
}

const MARKER = "KINFOLD_LEASE=";

/**
 * Says whether a connection comes from an agent of ours or from a process it started: one that
 * carries our marker in its environment, or descends from one that does. Linux only; elsewhere
 * nobody is found. A socket that is closed already has no owner to be found: while agents run, that
 * counts as theirs, because a request may be sent and its socket closed within an instant.
 */
export function agentPeerCheck(options: PeerOptions = {}): IsAgentPeer {
  if (process.platform !== "linux") return () => Promise.resolve(false);
  return async ({ remotePort, remoteAddress, localPort }) => {
    if (options.hasAgents?.() === false || !isLoopback(remoteAddress)) return false;
    const marked = await markedProcesses((await options.remembered?.()) ?? new Set());
    if (marked.length === 0) return false;
    const sockets = await socketsAt(remotePort, localPort);
    if (sockets.length === 0) return true;
    for (const pid of marked) if (await holdsOneOf(pid, sockets)) return true;
    return false;
  };
}

function isLoopback(address: string): boolean {
  const plain = address.toLowerCase().replace(/^::ffff:/, "");
  return plain === "::1" || (isIP(plain) === 4 && plain.startsWith("127."));
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly isMarked: boolean;
}

/** Every process that has the marker or is remembered, and every descendant of one, whatever its own environment is. */
async function markedProcesses(remembered: ReadonlySet<number>): Promise<number[]> {
  const names = await readdir("/proc");
  const own = process.pid;
  const pids = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const processes = (await Promise.all(pids.map(readProcess))).filter((item) => item !== null);
  const children = Map.groupBy(processes, (item) => item.parent);
  const found = new Set<number>();
  const isAgent = (item: Process): boolean => item.isMarked || remembered.has(item.pid);
  const queue = processes.filter((item) => isAgent(item) && item.pid !== own).map((item) => item.pid);
  for (let pid = queue.pop(); pid !== undefined; pid = queue.pop()) {
    if (found.has(pid) || pid === own) continue;
    found.add(pid);
    queue.push(...(children.get(pid) ?? []).map((item) => item.pid));
  }
  return [...found];
}

async function readProcess(pid: number): Promise<Process | null> {
  const [stat, environment] = await Promise.all([read(`/proc/${pid}/stat`), read(`/proc/${pid}/environ`)]);
  if (stat === null) return null;
  // The name in brackets may itself hold spaces and brackets, so fields are counted from its end.
  const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  const isMarked = environment !== null && `\0${environment}`.includes(`\0${MARKER}`);
  return { pid, parent, isMarked };
}

/** Null for a process that ended meanwhile or belongs to another user. */
async function read(path: string): Promise<string | null> {
  try {
    return await readFile(path, "latin1");
  } catch {
    return null;
  }
}

/** The socket at the other end: its local port is our remote one. Two only if both IP versions number alike. */
async function socketsAt(remotePort: number, localPort: number): Promise<string[]> {
  const tables = await Promise.all([read("/proc/net/tcp"), read("/proc/net/tcp6")]);
  const rows = tables
    .flatMap((table) => table?.split("\n").slice(1) ?? [])
    .map((row) => row.trim().split(/\s+/));
  return rows
    .filter(([, local = "", remote = ""]) => portOf(local) === remotePort && portOf(remote) === localPort)
    .map((row) => row[9] ?? "0")
    .filter((inode) => inode !== "0")
    .map((inode) => `socket:[${inode}]`);
}

function portOf(address: string): number {
  return Number.parseInt(address.slice(address.lastIndexOf(":") + 1), 16);
}

async function holdsOneOf(pid: number, sockets: readonly string[]): Promise<boolean> {
  try {
    const fds = await readdir(`/proc/${pid}/fd`);
    const targets = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => null)));
    return targets.some((target) => target !== null && sockets.includes(target));
  } catch {
    // The process ended meanwhile, and with it its socket.
    return false;
  }
}
