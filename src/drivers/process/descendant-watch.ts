import { hasMarker, identify, scanParents } from "../../system/process-table.ts";
import { membersOf, type ProcessTree } from "../../system/process-tree.ts";
import { sharedRun } from "../../system/shared-run.ts";
import type { ProcessIdentity } from "../../system/process.ts";
import { bootId } from "../../system/proc.ts";
import type { OpenRequest } from "../port.ts";

type OnUnmarked = NonNullable<OpenRequest["onUnmarked"]>;

export interface DescendantWatch {
  /** Scans now. Called before an agent is asked to end: later, its orphans may be impossible to find. */
  scan(): Promise<void>;
  /** Scans at short intervals from now on, because the agent is about to end. */
  scanOften(): void;
  end(): void;
}

/**
 * Remembers every process seen below an agent, by pid and start time, because a process without our marker
 * cannot be found once its parent has died. Reports the processes without the marker. All trees share one
 * timer and one scan.
 */
export function watchDescendants(tree: ProcessTree, onUnmarked: OnUnmarked): DescendantWatch {
  const watched: Watched = { tree, onUnmarked, reported: "", isEnding: false };
  trees.add(watched);
  scheduleScan();
  return {
    scan: () => scanNow(),
    scanOften() {
      watched.isEnding = true;
      scheduleScan();
    },
    end() {
      trees.delete(watched);
    },
  };
}

/** Returns the pids remembered below running agents. The server uses them to recognise agents' requests. */
export function rememberedPids(): ReadonlySet<number> {
  return new Set([...trees].flatMap(({ tree }) => [...tree.seen.keys()]));
}

interface Watched {
  readonly tree: ProcessTree;
  readonly onUnmarked: OnUnmarked;
  /** The last report; an unchanged set is not reported again. */
  reported: string;
  isEnding: boolean;
}

/** Without /proc a scan starts a program, so scans are less frequent. */
const SCAN_MS = process.platform === "linux" ? 500 : 2_000;
const ENDING_MS = 50;

const trees = new Set<Watched>();
let timer: NodeJS.Timeout | null = null;

function scheduleScan(): void {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  if (trees.size === 0) return;
  const waitMs = [...trees].some(({ isEnding }) => isEnding) ? ENDING_MS : SCAN_MS;
  // A failed scan, for instance for lack of file descriptors, is retried at the next interval.
  timer = setTimeout(() => void scanNow().then(scheduleScan, scheduleScan), waitMs).unref();
}

const scanNow = sharedRun(async (): Promise<void> => {
  if (trees.size === 0) return;
  const table = await scanParents();
  for (const watched of trees) {
    const { tree } = watched;
    const alive = membersOf(table, tree).map((row) => tree.seen.get(row.pid) ?? identify(row));
    tree.seen.clear();
    for (const one of alive) tree.seen.set(one.pid, one);
    report(watched, alive);
  }
});

/** Reports nothing without a boot id, because the processes could not be recognised after a crash. */
function report(watched: Watched, alive: readonly ProcessIdentity[]): void {
  const boot = bootId();
  if (boot === null) return;
  const unmarked = alive.filter((one) => !hasMarker(one.pid, watched.tree.leaseId));
  const key = unmarked.map((one) => `${one.pid}:${one.startTime}`).join(" ");
  if (key === watched.reported) return;
  watched.reported = key;
  watched.onUnmarked(unmarked.map((one) => ({ ...one, boot })));
}
