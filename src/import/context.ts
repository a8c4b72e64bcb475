import type { HistoryProblem, HistoryScan } from "../contract/index.ts";
import { newScan } from "../domain/imported.ts";
import type { HistoryReader } from "../history/port.ts";
import type { Catalog } from "./catalog.ts";
import type { ThreadRpc } from "../system/thread-rpc.ts";
import type { CurrentTasks } from "./thread/current-tasks.ts";
import type { LiveList } from "./live-list.ts";
import type { SharedPrefixes } from "./shared-prefix.ts";
import type { ImportOptions, StoreSide } from "./thread/protocol.ts";
import type { SetAside } from "./thread/restarts.ts";

export interface Reading {
  readonly reader: HistoryReader;
  readonly roots: readonly string[];
}

/** Shared by all parts of the import thread. */
export interface Context {
  readonly rpc: ThreadRpc<StoreSide>;
  readonly catalog: Catalog;
  readonly options: ImportOptions;
  readonly readings: readonly Reading[];
  readonly sharedPrefixes: SharedPrefixes;
  readonly live: LiveList;
  /** By member key: when the member's file was last seen to grow. */
  readonly grown: Map<string, Growth>;
  /** By family: verdicts that rest only on a missing process, which may be listed later. */
  readonly doubted: Map<string, Doubt>;
  readonly progress: ProgressPublisher;
  readonly signal: AbortSignal;
  readonly tasks: CurrentTasks;
  setAside: readonly SetAside[];
  exclude: readonly string[];
  /** The exclusions have changed, so excluded sessions are examined again. */
  rechecksExcluded: boolean;
}

export interface Growth {
  readonly at: number;
  /** The file was written after the agent's process list was read, and the list has no process for it. */
  readonly isUnlisted: boolean;
}

export interface Doubt {
  readonly format: string;
  readonly rootId: string;
  readonly until: number;
}

/** How long observed growth of a file counts as evidence of work. */
export const GROWN_MS = 5 * 60_000;

export function seenWorking({ grown }: Context, now: number): Map<string, string> {
  const seen = new Map<string, string>();
  for (const [key, { at }] of grown) {
    if (now - at > GROWN_MS) grown.delete(key);
    else seen.set(key, "its file was seen to grow");
  }
  return seen;
}

const PUBLISH_MS = 250;
const PROBLEMS_MAX = 200;

export type Counted = Pick<HistoryScan, "found" | "excluded" | "files" | "filesRead" | "bytes" | "bytesRead">;

/** Publishes the import's progress, at most a few times a second. */
export class ProgressPublisher {
  readonly scan: HistoryScan = newScan({ enabled: true, phase: "starting", exclude: [] });
  problems: HistoryProblem[] = [];
  readonly #rpc: ThreadRpc<StoreSide>;
  readonly #count: () => Counted;
  #timer: NodeJS.Timeout | null = null;

  constructor(rpc: ThreadRpc<StoreSide>, count: () => Counted) {
    this.#rpc = rpc;
    this.#count = count;
  }

  problem(problem: HistoryProblem): void {
    this.scan.problemCount += 1;
    if (this.problems.length < PROBLEMS_MAX) this.problems.push(problem);
  }

  publish(): void {
    this.#timer ??= setTimeout(() => void this.publishNow(), PUBLISH_MS);
  }

  async publishNow(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    Object.assign(this.scan, this.#count());
    await this.#rpc.ask("progress", { scan: this.scan, problems: this.problems });
  }
}
