import { setTimeout as pause } from "node:timers/promises";
import type { ProcessIdentity, ReapReport, Reaper, RememberedProcess } from "./process.ts";
import {
  identify,
  isSame,
  isSameAlive,
  type ProcessRow,
  type ProcessTable,
  scanProcesses,
  startedAt,
} from "./process-table.ts";
import { bootId, sendSignal } from "./proc.ts";

/** One agent's processes: the one we started, its descendants, and every process with its marker. */
export interface ProcessTree {
  readonly leaseId: string;
  readonly root: ProcessIdentity;
  /** Processes that scans saw below the root. They belong to the agent even after they have left the tree. */
  readonly seen: Map<number, ProcessIdentity>;
}

/**
 * Stops the root with SIGSTOP, so that it starts nothing new. Then kills everything found and scans again,
 * until a scan finds nothing or the time is over. Resolves to the processes that remained.
 */
export async function stopTree(tree: ProcessTree): Promise<ProcessIdentity[]> {
  signal(tree.root, "SIGSTOP");
  const { left } = await endAll((table) => membersOf(table, tree));
  return [...left];
}

/** Does not include the root. */
export async function descendantsOf(tree: ProcessTree): Promise<ProcessIdentity[]> {
  const table = await scanProcesses();
  const found = membersOf(table, tree)
    .filter((row) => row.pid !== tree.root.pid)
    .map(identify);
  for (const one of found) tree.seen.set(one.pid, one);
  return found;
}

/** Whether a process below the root started at or after `since` and is not in `before`. */
export async function hasBegun(
  tree: ProcessTree,
  since: number,
  before: ReadonlySet<number>,
): Promise<boolean> {
  const found = await descendantsOf(tree);
  return found.some(
    (one) => !before.has(one.pid) && one.startTime !== null && startedAt(one.startTime) >= since - SLACK_MS,
  );
}

/**
 * Kills every process with one of these markers, the remembered processes, and the descendants of both. A
 * remembered process is killed only if its boot and start time still match: pids are reused.
 */
export async function killMarked(
  leaseIds: ReadonlySet<string>,
  remembered: readonly RememberedProcess[] = [],
): Promise<ReapReport> {
  if (leaseIds.size === 0) return { killed: [], left: [] };
  const known = new Map(remembered.filter(isOfThisBoot).map((one) => [one.pid, one]));
  return endAll((table) =>
    withDescendants(table, [...markedRows(table, leaseIds), ...knownRows(table, known)]),
  );
}

export const reaper: Reaper = {
  reap: (leaseIds, remembered) => killMarked(new Set(leaseIds), remembered),
};

function isOfThisBoot({ boot, startTime }: RememberedProcess): boolean {
  return startTime !== null && boot !== undefined && boot !== null && boot === bootId();
}

const STOP_MS = 5_000;
/** The tolerance for start times, whose resolution is a hundredth of a second. */
const SLACK_MS = 20;

async function endAll(find: (table: ProcessTable) => ProcessRow[]): Promise<ReapReport> {
  const deadline = performance.now() + STOP_MS;
  const killed = new Map<number, ProcessIdentity>();
  for (let round = 0; ; round += 1) {
    const found = find(await scanProcesses());
    if (found.length === 0) return { killed: [...killed.values()], left: [] };
    // Stop all of them with SIGSTOP before the first kill. Otherwise an agent could see its command die and
    // go on working.
    for (const row of found) signal(identify(row), "SIGSTOP");
    for (const row of found) {
      const identity = killed.get(row.pid) ?? identify(row);
      killed.set(row.pid, identity);
      signal(identity, "SIGKILL");
    }
    if (performance.now() > deadline) return split(killed, found);
    await pause(Math.min(5 * 2 ** round, 100));
  }
}

function split(all: ReadonlyMap<number, ProcessIdentity>, remaining: readonly ProcessRow[]): ReapReport {
  const leftPids = new Set(remaining.map((row) => row.pid));
  return {
    killed: [...all.values()].filter((one) => !leftPids.has(one.pid)),
    left: remaining.map(identify),
  };
}

export function membersOf(table: ProcessTable, tree: ProcessTree): ProcessRow[] {
  const { root, seen } = tree;
  const leader = table.get(root.pid);
  const isOurLeader = leader === undefined || isSame(leader, root);
  const led = [...table.values()].filter((row) => row.pid === root.pid || row.leaderPid === root.pid);
  const marked = markedRows(table, new Set([tree.leaseId]));
  return withDescendants(table, [...marked, ...(isOurLeader ? led : []), ...knownRows(table, seen)]);
}

function markedRows(table: ProcessTable, leaseIds: ReadonlySet<string>): ProcessRow[] {
  return [...table.values()].filter((row) => row.leaseId !== null && leaseIds.has(row.leaseId));
}

function knownRows(table: ProcessTable, known: ReadonlyMap<number, ProcessIdentity>): ProcessRow[] {
  return [...table.values()].filter((row) => {
    const before = known.get(row.pid);
    return before !== undefined && isSame(row, before);
  });
}

/** Includes the roots. Never includes this process, even if it runs below an agent. */
function withDescendants(table: ProcessTable, roots: readonly ProcessRow[]): ProcessRow[] {
  const children = Map.groupBy(table.values(), (row) => row.parentPid);
  const found = new Map<number, ProcessRow>();
  const pending = [...roots];
  for (let row = pending.pop(); row !== undefined; row = pending.pop()) {
    if (found.has(row.pid) || row.pid === process.pid || row.pid <= 1) continue;
    found.set(row.pid, row);
    pending.push(...(children.get(row.pid) ?? []));
  }
  return [...found.values()];
}

/** Checks first that the target is still the same process: its pid may have been reused. */
function signal(target: ProcessIdentity, name: "SIGSTOP" | "SIGKILL"): void {
  if (!isSameAlive(target)) return;
  try {
    sendSignal(target.pid, name);
  } catch (error) {
    // We may not signal this process. The next scan finds it again, and in the end it is reported as still
    // running.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
  }
}
