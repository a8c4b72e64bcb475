import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { listPids, openLinks, readStat } from "./proc.ts";
import { sharedRun } from "./shared-run.ts";
import { markerIn, startedAt } from "./process-table.ts";

export interface Peer {
  readonly remotePort: number;
  readonly remoteAddress: string;
  readonly localPort: number;
}

/** Whether the connection comes from one of our agents or a process that it started. */
export type IsAgentPeer = (peer: Peer) => Promise<boolean>;

export interface PeerOptions {
  /** Returns false while none of our agents runs. The check then needs no lookup. */
  readonly hasAgents?: () => boolean;
  /** Pids of agents' processes that do not have the marker and have no ancestor with the marker. */
  readonly remembered?: () => Promise<ReadonlySet<number>>;
}

/**
 * Looks for our marker in the environments of the connecting process and its ancestors. Linux only; elsewhere
 * always false. The owner of a closed socket cannot be found. While agents run, a closed socket counts as
 * theirs: otherwise an agent could send a request and close its socket at once.
 */
export function agentPeerCheck(options: PeerOptions = {}): IsAgentPeer {
  if (process.platform !== "linux") return () => Promise.resolve(false);
  const looks = sharedRun(() => lookAround(options.remembered), PAUSE_FACTOR);
  const tables = sharedRun(readTables, PAUSE_FACTOR);
  return async ({ remotePort, remoteAddress, localPort }) => {
    if (options.hasAgents?.() === false || !isLoopback(remoteAddress)) return false;
    const sockets = socketsAt(await tables(), remotePort, localPort);
    const seen = await looks();
    if (!seen.hasAgents) return false;
    if (sockets.length === 0 || sockets.some((socket) => seen.sockets.has(socket))) return true;
    // If the socket is closed by now, its owner cannot be found, and the socket counts as an agent's.
    const left = socketsAt(await tables(), remotePort, localPort);
    return !sockets.some((socket) => left.includes(socket));
  };
}

interface Seen {
  readonly hasAgents: boolean;
  /** The sockets of agents, named as in the links of `/proc/<pid>/fd`: `socket:[123]`. */
  readonly sockets: ReadonlySet<string>;
}

/** The pause after a lookup, as a multiple of its CPU time. So lookups use at most a quarter of the time. */
const PAUSE_FACTOR = 3;

async function lookAround(remembered: PeerOptions["remembered"]): Promise<Seen> {
  const marked = await markedProcesses((await remembered?.()) ?? new Set());
  const sockets = new Set<string>();
  for (const pid of marked) for (const [target] of await openLinks(pid)) sockets.add(target);
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

/** Returns the pids of marked or remembered processes and of all their descendants. */
async function markedProcesses(remembered: ReadonlySet<number>): Promise<number[]> {
  const own = process.pid;
  const pids = listPids();
  const processes: Process[] = [];
  for (const [at, pid] of pids.entries()) {
    // Let the event loop run after each batch.
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

/** Whether a process has the marker, by pid. An entry is valid only for its start time: pids are reused. */
const environments = new Map<number, { readonly start: number; readonly isMarked: boolean }>();
/**
 * Until its exec, a forked process shows its parent's environment. So a missing marker is cached only for a
 * process that is older than this.
 */
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

/** Null if the process has ended or belongs to another user. */
async function read(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch {
    return null;
  }
}

/** Reads all TCP connections of the machine. The kernel takes milliseconds to list them. */
async function readTables(): Promise<(string | null)[]> {
  const tables = await Promise.all([read("/proc/net/tcp"), read("/proc/net/tcp6")]);
  return tables.map((table) => table?.toString("latin1") ?? null);
}

/**
 * Returns the sockets at the other end, whose local port is our remote port. There are two only if an IPv4
 * and an IPv6 connection have the same port numbers.
 */
function socketsAt(tables: readonly (string | null)[], remotePort: number, localPort: number): string[] {
  const [near, far] = [hexOf(remotePort), hexOf(localPort)];
  return tables.flatMap((table) => {
    const found: string[] = [];
    // Parse only the rows that contain this port, because the table may have thousands of rows.
    for (let at = table?.indexOf(near) ?? -1; at !== -1; at = table!.indexOf(near, at + 1)) {
      const row = table!.slice(table!.lastIndexOf("\n", at) + 1, table!.indexOf("\n", at));
      const [, local = "", remote = "", , , , , , , inode = "0"] = row.trim().split(/\s+/);
      const isOurs = `${local} `.endsWith(near) && `${remote} `.endsWith(far);
      if (isOurs && inode !== "0") found.push(`socket:[${inode}]`);
    }
    return found;
  });
}

/** Returns the text with which every address with this port ends in the tables. */
function hexOf(port: number): string {
  return `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
}
