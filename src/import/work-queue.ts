/** One item of work. `run` must not reject. */
export interface WorkItem<Kind extends string> {
  readonly kind: Kind;
  readonly key: string;
  readonly run: () => Promise<void>;
  readonly dueAt?: number;
  /** Among the due items of one kind, the one with the highest rank runs first. */
  readonly rank?: number;
}

interface Queued {
  run: () => Promise<void>;
  dueAt: number;
  rank: number;
  readonly done: PromiseWithResolvers<void>;
}

interface Lane {
  readonly waiting: Map<string, Queued>;
  readonly running: Set<Queued>;
}

interface Setup<Kind extends string> {
  readonly limits: Readonly<Record<Kind, number>>;
  readonly signal: AbortSignal;
  readonly onIdle: (kind: Kind) => void;
}

/** Orders work by kind, time and rank. Items of different kinds do not wait for each other. */
export class WorkQueue<Kind extends string> {
  readonly #setup: Setup<Kind>;
  readonly #lanes: Readonly<Record<Kind, Lane>>;
  readonly #kinds: readonly Kind[];
  #timer: NodeJS.Timeout | undefined;
  #wakeAt = Number.POSITIVE_INFINITY;

  constructor(setup: Setup<Kind>) {
    this.#setup = setup;
    this.#kinds = Object.keys(setup.limits) as Kind[];
    const lanes = this.#kinds.map((kind) => [kind, { waiting: new Map(), running: new Set() }]);
    this.#lanes = Object.fromEntries(lanes) as Record<Kind, Lane>;
    setup.signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** Items with the same key become one, which runs once at the earlier of both times. */
  add({ kind, key, run, dueAt = Date.now(), rank = 0 }: WorkItem<Kind>): Promise<void> {
    const { waiting } = this.#lanes[kind];
    const item = waiting.get(key) ?? { run, dueAt, rank, done: Promise.withResolvers<void>() };
    waiting.set(key, item);
    Object.assign(item, { run, dueAt: Math.min(item.dueAt, dueAt), rank: Math.max(item.rank, rank) });
    this.#wake(item.dueAt);
    return item.done.promise;
  }

  isIdle(kind: Kind): boolean {
    const { waiting, running } = this.#lanes[kind];
    return waiting.size === 0 && running.size === 0;
  }

  async finish(kind: Kind): Promise<void> {
    const { waiting, running } = this.#lanes[kind];
    await Promise.all([...running, ...waiting.values()].map(({ done }) => done.promise));
  }

  #wake(at: number): void {
    if (at >= this.#wakeAt || this.#setup.signal.aborted) return;
    clearTimeout(this.#timer);
    this.#wakeAt = at;
    const startAll = (): void => {
      this.#wakeAt = Number.POSITIVE_INFINITY;
      for (const kind of this.#kinds) this.#startDue(kind);
    };
    this.#timer = setTimeout(startAll, Math.max(0, at - Date.now()));
  }

  #startDue(kind: Kind): void {
    const { limits, signal } = this.#setup;
    const { waiting, running } = this.#lanes[kind];
    const now = Date.now();
    while (running.size < limits[kind] && !signal.aborted) {
      let next: [string, Queued] | null = null;
      for (const each of waiting) {
        if (each[1].dueAt > now) this.#wake(each[1].dueAt);
        else if (next === null || each[1].rank > next[1].rank) next = each;
      }
      if (next === null) return;
      waiting.delete(next[0]);
      void this.#run(kind, next[1]);
    }
  }

  async #run(kind: Kind, item: Queued): Promise<void> {
    const { running } = this.#lanes[kind];
    running.add(item);
    await item.run();
    running.delete(item);
    item.done.resolve();
    if (this.isIdle(kind)) this.#setup.onIdle(kind);
    else this.#startDue(kind);
  }
}
