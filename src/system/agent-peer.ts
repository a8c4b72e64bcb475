import { readFile, readdir, readlink } from "node:fs/promises";
import { isIP } from "node:net";
import { listPids, readStat } from "./proc.ts";
import { sharedRun } from "./shared-run.ts";
import { markerIn, startedAt } from "./process-table.ts";

/** The two ends of a connection, as its socket knows them. */
export interface Peer {
  readonly remotePort: number;
  readonly remoteAddress: string;
  readonly localPort: number;
}

/** True when the connection comes from a process that an agent of ours started. */
export type IsAgentPeer = (peer: Peer) => Promise<boolean>;

export interface PeerOptions {
  /** False while no agent of ours runs: then nothing needs to be looked up. */
  readonly hasAgents?: () => boolean;
  /** Processes of agents that neither carry the marker nor descend from one that does. */
  readonly remembered?: () => Promise<ReadonlySet<number>>;
}

/**
 * Says whether a connection comes from an agent of ours or from a process it started: one that
 * carries our marker in its environment, or descends from one that does. Linux only; elsewhere
 * nobody is found. A socket that is closed already has no owner to be found: while agents run, that
 * counts as theirs, because a request may be sent and its socket closed within an instant.
 */
export function agentPeerCheck(options: PeerOptions = {}): IsAgentPeer {
  if (process.platform !== "linux") return () => Promise.resolve(false);
  const looks = sharedRun(() => lookAround(options.remembered), REST_FACTOR);
  const tables = sharedRun(readTables, REST_FACTOR);
  return async ({ remotePort, remoteAddress, localPort }) => {
    if (options.hasAgents?.() === false || !isLoopback(remoteAddress)) return false;
    const sockets = socketsAt(await tables(), remotePort, localPort);
    const seen = await looks();
    if (!seen.hasAgents) return false;
    if (sockets.length === 0 || sockets.some((socket) => seen.sockets.has(socket))) return true;
    // A process that ended before it was looked at cannot be told apart any more.
    const left = socketsAt(await tables(), remotePort, localPort);
    return !sockets.some((socket) => left.includes(socket));
  };
}

/** What the agents of ours held at one moment. */
interface Seen {
  readonly hasAgents: boolean;
  /** As links of open files name them: `socket:[123]`. */
  readonly sockets: ReadonlySet<string>;
}

/** A flood of connections shares its looks, and costs a quarter of the time at most. */
const REST_FACTOR = 3;

async function lookAround(remembered: PeerOptions["remembered"]): Promise<Seen> {
  const marked = await markedProcesses((await remembered?.()) ?? new Set());
  const sockets = new Set<string>();
  for (const pid of marked) for (const socket of await socketsOf(pid)) sockets.add(socket);
  return { hasAgents: marked.length > 0, sockets };
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
  const own = process.pid;
  const pids = listPids();
  const processes: Process[] = [];
  for (const [at, pid] of pids.entries()) {
    // So many at a time that nobody else waits long.
    if (at % BATCH === BATCH - 1) await new Promise((resolve) => setImmediate(resolve));
    const item = await readProcess(pid);
    if (item !== null) processes.push(item);
  }
  const there = new Set(pids);
  for (const pid of environments.keys()) if (!there.has(pid)) environments.delete(pid);
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

const BATCH = 50;

/** What the environment of a process said, by pid; of another process with the same pid it says nothing. */
const environments = new Map<number, { readonly start: number; readonly isMarked: boolean }>();
/** A process that has just been forked has not got its own environment yet, so its first one is not kept. */
const SETTLED_MS = 10_000;

async function readProcess(pid: number): Promise<Process | null> {
  const stat = readStat(pid);
  if (stat === null) return null;
  return { pid, parent: stat.parentPid, isMarked: await isMarked(pid, stat.startTime) };
}

async function isMarked(pid: number, start: number): Promise<boolean> {
  const known = environments.get(pid);
  if (known?.start === start) return known.isMarked;
  const environment = await read(`/proc/${pid}/environ`);
  const found = environment !== null && markerIn(environment) !== null;
  if (found || Date.now() - startedAt(start) > SETTLED_MS) environments.set(pid, { start, isMarked: found });
  return found;
}

/** Null for a process that ended meanwhile or belongs to another user. */
async function read(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch {
    return null;
  }
}

/** All connections of the machine, which the kernel takes milliseconds to list. */
async function readTables(): Promise<(string | null)[]> {
  const tables = await Promise.all([read("/proc/net/tcp"), read("/proc/net/tcp6")]);
  return tables.map((table) => table?.toString("latin1") ?? null);
}

/** The socket at the other end: its local port is our remote one. Two only if both IP versions number alike. */
function socketsAt(tables: readonly (string | null)[], remotePort: number, localPort: number): string[] {
  const [near, far] = [hexOf(remotePort), hexOf(localPort)];
  return tables.flatMap((table) => {
    const found: string[] = [];
    // Of thousands of rows only those with this port are taken apart.
    for (let at = table?.indexOf(near) ?? -1; at !== -1; at = table!.indexOf(near, at + 1)) {
      const row = table!.slice(table!.lastIndexOf("\n", at) + 1, table!.indexOf("\n", at));
      const [, local = "", remote = "", , , , , , , inode = "0"] = row.trim().split(/\s+/);
      const isOurs = `${local} `.endsWith(near) && `${remote} `.endsWith(far);
      if (isOurs && inode !== "0") found.push(`socket:[${inode}]`);
    }
    return found;
  });
}

/** How a port ends an address in the tables. */
function hexOf(port: number): string {
  return `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
}

async function socketsOf(pid: number): Promise<string[]> {
  try {
    const fds = await readdir(`/proc/${pid}/fd`);
    // A file that was closed in the meantime is not the socket.
    const targets = await Promise.all(fds.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => null)));
    return targets.filter((target) => target?.startsWith("socket:") === true) as string[];
  } catch {
    // The process ended meanwhile, and with it its socket.
    return [];
  }
}
