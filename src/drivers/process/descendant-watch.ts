import { hasMarker, identify, scanParents } from "../../system/process-table.ts";
import { membersOf } from "../../system/process-tree.ts";
import type { ProcessTree } from "../../system/process-tree.ts";
import { sharedRun } from "../../system/shared-run.ts";
import type { ProcessIdentity, RememberedProcess } from "../../system/process.ts";
import { bootId } from "../../system/proc.ts";

/** Called with the live processes of a tree that only memory still ties to it. */
export type OnUnmarked = (processes: readonly RememberedProcess[]) => void;

export interface DescendantWatch {
  /** Looks now, for instance before an agent is asked to end: its children lose their parent then. */
  look(): Promise<void>;
  /** From now on looks follow each other quickly, because the agent is about to end. */
  hurry(): void;
  end(): void;
}

/**
 * Remembers every process that is seen below an agent by pid and start time, for the guard: a
 * process without our marker is lost as soon as its parent dies. All trees share one timer and one scan.
 * Reports the processes without the marker, because the others are found by it.
 */
export function watchDescendants(tree: ProcessTree, onUnmarked: OnUnmarked): DescendantWatch {
  const watched: Watched = { tree, onUnmarked, reported: "", isEnding: false };
  trees.add(watched);
  lookSoon();
  return {
    look: () => lookNow(),
    hurry() {
      watched.isEnding = true;
      lookSoon();
    },
    end() {
      trees.delete(watched);
    },
  };
}

/** Every process that is remembered below a running agent, for the check who calls us. */
export function rememberedPids(): ReadonlySet<number> {
  return new Set([...trees].flatMap(({ tree }) => [...tree.seen.keys()]));
}

interface Watched {
  readonly tree: ProcessTree;
  readonly onUnmarked: OnUnmarked;
  /** What was reported last: a set that has not changed is not reported again. */
  reported: string;
  isEnding: boolean;
}

/** Where there is no /proc a look starts a program, and is made less often. */
const LOOK_MS = process.platform === "linux" ? 500 : 2_000;
const ENDING_MS = 50;

const trees = new Set<Watched>();
let timer: NodeJS.Timeout | null = null;

function lookSoon(): void {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  if (trees.size === 0) return;
  const waitMs = [...trees].some(({ isEnding }) => isEnding) ? ENDING_MS : LOOK_MS;
  // A look that failed (no free file handle, say) is made again at the next beat.
  timer = setTimeout(() => void lookNow().then(lookSoon, lookSoon), waitMs).unref();
}

const lookNow = sharedRun(async (): Promise<void> => {
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

/** Where the machine's run has no name, nothing could be recognised after a crash. */
function report(watched: Watched, alive: readonly ProcessIdentity[]): void {
  const boot = bootId();
  if (boot === null) return;
  const unmarked = alive.filter((one) => !hasMarker(one.pid, watched.tree.leaseId));
  const key = unmarked.map((one) => `${one.pid}:${one.startTime}`).join(" ");
  if (key === watched.reported) return;
  watched.reported = key;
  watched.onUnmarked(unmarked.map((one) => ({ ...one, boot })));
}
