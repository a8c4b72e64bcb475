import type { ImportTask } from "./current-tasks.ts";

/** A file or folder that is skipped, because the import thread died while reading it. */
export interface SetAside extends ImportTask {
  readonly reason: string;
  /** True: retried only when a caller requests an import. False: also retried when the file changes. */
  readonly isUntilAsked: boolean;
}

const PAUSE_MIN_MS = 1_000;
const PAUSE_MAX_MS = 5 * 60_000;
/** A thread that lived this long was healthy: earlier deaths no longer count. */
const WELL_MS = 10 * 60_000;

export class Restarts {
  readonly #setAside = new Map<string, SetAside>();
  #deathCount = 0;
  #isCareful = false;

  get setAside(): SetAside[] {
    return [...this.#setAside.values()];
  }

  /** True after the thread died while several tasks ran. Then one runs at a time, to find the fatal one. */
  get isCareful(): boolean {
    return this.#isCareful;
  }

  /** Records a death of the thread; returns how many milliseconds to wait before the next start. */
  died(death: { tasks: readonly ImportTask[]; error: string; livedMs: number }): number {
    const { tasks, error, livedMs } = death;
    if (livedMs >= WELL_MS) [this.#deathCount, this.#isCareful] = [0, false];
    this.#deathCount += 1;
    const [task, ...others] = tasks;
    if (others.length > 0) this.#isCareful = true;
    else if (task !== undefined) {
      const reason = `not imported: the import thread died on ${task.key ?? "listing it"} (${error})`;
      const isUntilAsked = task.key === null || this.#setAside.has(nameOf(task));
      this.#setAside.set(nameOf(task), { ...task, reason, isUntilAsked });
    }
    return Math.min(PAUSE_MAX_MS, PAUSE_MIN_MS * 2 ** (this.#deathCount - 1));
  }

  /** Used when a caller requests an import: everything that was set aside is tried again. */
  retryAll(): void {
    this.#setAside.clear();
  }
}

export function whySetAside(setAside: readonly SetAside[], task: ImportTask): string | null {
  const found = setAside.find((each) => nameOf(each) === nameOf(task));
  return found !== undefined && (found.isUntilAsked || found.stamp === task.stamp) ? found.reason : null;
}

function nameOf({ format, path, key }: ImportTask): string {
  return key ?? `${format} ${path}`;
}
