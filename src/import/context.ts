import type { HistoryProblem, HistoryScan } from "../contract/index.ts";
import { newScan } from "../domain/history-scan.ts";
import type { HistoryReader } from "../history/port.ts";
import type { judgeTree, replaysOf } from "../history/state/trees.ts";
import type { Catalog } from "./catalog.ts";
import type { ThreadRpc } from "../system/thread-rpc.ts";
import type { CurrentTasks } from "./thread/current-tasks.ts";
import type { LiveList } from "./live-list.ts";
import type { SharedPrefixes } from "./shared-prefix.ts";
import type { ImportOptions, StoreSide } from "./thread/protocol.ts";
import type { SetAside } from "./thread/restarts.ts";

/** A reader with the folders it looks into. */
export interface Reading {
  readonly reader: HistoryReader;
  readonly roots: readonly string[];
}

/** What the parts of the reading thread share. */
export interface Context {
  readonly rpc: ThreadRpc<StoreSide>;
  readonly catalog: Catalog;
  readonly options: ImportOptions;
  readonly readings: readonly Reading[];
  readonly judge: typeof judgeTree;
  readonly replays: typeof replaysOf;
  readonly sharedPrefixes: SharedPrefixes;
  readonly live: LiveList;
  /** By key: when its file was last seen to grow. */
  readonly grown: Map<string, Growth>;
  /** By family: what rests on nothing but that its agent lists no process for it, and may be too early. */
  readonly doubted: Map<string, Doubt>;
  readonly progress: ProgressPublisher;
  readonly signal: AbortSignal;
  readonly tasks: CurrentTasks;
  setAside: readonly SetAside[];
  exclude: readonly string[];
  /** What was left out is looked at again. */
  asksAgain: boolean;
}

export interface Growth {
  readonly at: number;
  /** It was written after its agent's list of processes had none for it: somebody writes whom it does not list. */
  readonly isUnlisted: boolean;
}

export interface Doubt {
  readonly format: string;
  /** As the agent's list names the session at the top. */
  readonly rootId: string;
  readonly until: number;
}

/** How long what was seen of a file says that somebody works on it. */
export const GROWN_MS = 5 * 60_000;

export function seenWorking({ grown }: Context, now: number): Map<string, string> {
  const seen = new Map<string, string>();
  for (const [key, { at }] of grown) {
    if (now - at > GROWN_MS) grown.delete(key);
    else seen.set(key, "its file was seen to grow");
  }
  return seen;
}

const TELL_MS = 250;
const PROBLEMS_MAX = 200;

export type Counted = Pick<HistoryScan, "found" | "excluded" | "files" | "filesRead" | "bytes" | "bytesRead">;

/** How far everything has come, told a few times a second at most. */
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

  tell(): void {
    this.#timer ??= setTimeout(() => void this.tellNow(), TELL_MS);
  }

  async tellNow(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    Object.assign(this.scan, this.#count());
    await this.#rpc.ask("progress", { scan: this.scan, problems: this.problems });
  }
}
