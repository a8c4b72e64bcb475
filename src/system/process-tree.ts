import { setTimeout as pause } from "node:timers/promises";
import type { ProcessIdentity, ReapReport, Reaper, RememberedProcess } from "./process.ts";
import { identify, isSameAlive, scanProcesses, startedAt } from "./process-table.ts";
import type { ProcessRow, ProcessTable } from "./process-table.ts";
import { bootId, sendSignal } from "./proc.ts";

/** One agent's processes: the one we started, its descendants, and every process with its marker. */
export interface ProcessTree {
  readonly leaseId: string;
  readonly root: ProcessIdentity;
  /** Processes seen below the root before. A process that left the tree still belongs to it. */
  readonly seen: Map<number, ProcessIdentity>;
}

export interface MarkedProcess extends ProcessIdentity {
  readonly leaseId: string;
}

/**
 * Stops the root with SIGSTOP, so that it starts nothing new. Then kills everything found and scans again
 * until a scan finds nothing. Resolves to the processes that remained.
 */
export async function stopTree(tree: ProcessTree, limitMs = STOP_MS): Promise<ProcessIdentity[]> {
  signal(tree.root, "SIGSTOP");
  const { left } = await endAll((table) => membersOf(table, tree), limitMs);
  return [...left];
}

/** Without the root. */
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

export async function listMarked(leaseIds: ReadonlySet<string>): Promise<MarkedProcess[]> {
  const table = await scanProcesses();
  return markedRows(table, leaseIds).map((row) => ({ ...identify(row), leaseId: row.leaseId as string }));
}

/**
 * Kills every process with one of these markers, the remembered processes, and the descendants of both. A
 * remembered process counts only if boot and start time are the same.
 */
export async function killMarked(
  leaseIds: ReadonlySet<string>,
  remembered: readonly RememberedProcess[] = [],
  limitMs = STOP_MS,
): Promise<ReapReport> {
  if (leaseIds.size === 0) return { killed: [], left: [] };
  const known = new Map(remembered.filter(isOfThisBoot).map((one) => [one.pid, one]));
  const isRoot = (row: ProcessRow): boolean => {
    const seen = known.get(row.pid);
    const isMarked = row.leaseId !== null && leaseIds.has(row.leaseId);
    return isMarked || (seen !== undefined && isSame(row, seen));
  };
  const find = (table: ProcessTable): ProcessRow[] =>
    withDescendants(table, [...table.values()].filter(isRoot));
  return endAll(find, limitMs);
}

export const reaper: Reaper = {
  reap: (leaseIds, remembered) => killMarked(new Set(leaseIds), remembered),
};

function isOfThisBoot({ boot, startTime }: RememberedProcess): boolean {
  return startTime !== null && boot !== undefined && boot !== null && boot === bootId();
}

const STOP_MS = 5_000;
/** Start times have a resolution of a hundredth of a second. */
const SLACK_MS = 20;

async function endAll(find: (table: ProcessTable) => ProcessRow[], limitMs: number): Promise<ReapReport> {
  const deadline = performance.now() + limitMs;
  const killed = new Map<number, ProcessIdentity>();
  for (let round = 0; ; round += 1) {
    const found = find(await scanProcesses());
    if (found.length === 0) return { killed: [...killed.values()], left: [] };
    // Stop all of them before the first kill: an agent that sees its command die would continue its work.
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
  const roots = markedRows(table, new Set([tree.leaseId]));
  const leader = table.get(tree.root.pid);
  const isOurLeader = leader === undefined || isSame(leader, tree.root);
  for (const row of table.values()) {
    if (isOurLeader && (row.pid === tree.root.pid || row.leaderPid === tree.root.pid)) roots.push(row);
    const seen = tree.seen.get(row.pid);
    if (seen !== undefined && isSame(row, seen)) roots.push(row);
  }
  return withDescendants(table, roots);
}

function markedRows(table: ProcessTable, leaseIds: ReadonlySet<string>): ProcessRow[] {
  return [...table.values()].filter((row) => row.leaseId !== null && leaseIds.has(row.leaseId));
}

/** Includes the roots. Never includes this process, even if it runs below an agent. */
function withDescendants(table: ProcessTable, roots: readonly ProcessRow[]): ProcessRow[] {
  const children = new Map<number, ProcessRow[]>();
  for (const row of table.values()) {
    const siblings = children.get(row.parentPid);
    if (siblings) siblings.push(row);
    else children.set(row.parentPid, [row]);
  }
  const found = new Map<number, ProcessRow>();
  const pending = [...roots];
  for (let row = pending.pop(); row !== undefined; row = pending.pop()) {
    if (found.has(row.pid) || row.pid === process.pid || row.pid <= 1) continue;
    found.set(row.pid, row);
    pending.push(...(children.get(row.pid) ?? []));
  }
  return [...found.values()];
}

function isSame(row: ProcessRow, known: ProcessIdentity): boolean {
  return known.startTime === null || row.startTime === known.startTime;
}

/** Checks first that it is still the same process: its pid may have been reused. */
function signal(target: ProcessIdentity, name: "SIGSTOP" | "SIGKILL"): void {
  if (!isSameAlive(target)) return;
  try {
    sendSignal(target.pid, name);
  } catch (error) {
    // We may not signal it. The next scan finds it again, and it is reported as left.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") throw error;
  }
}
