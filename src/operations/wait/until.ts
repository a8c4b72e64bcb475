import type { Commit } from "../../store/port/store.ts";
import type { OperationDeps } from "../deps.ts";

/** Calls `ask` after every commit to the tree, and every two seconds, until it answers or time is up. */
export async function until<T>(
  deps: OperationDeps,
  scope: { rootId: string; timeoutMs: number; signal?: AbortSignal },
  ask: () => Promise<T | null>,
): Promise<T | null> {
  const { rootId, timeoutMs, signal } = scope;
  const deadline = performance.now() + timeoutMs;
  const changes = new Changes(deps, (commit) => commit.rootIds.includes(rootId));
  try {
    for (;;) {
      const seen = changes.count;
      const answer = await ask();
      const leftMs = deadline - performance.now();
      if (answer !== null || leftMs <= 0 || signal?.aborted) return answer;
      await changes.since(seen, Math.min(leftMs, 2_000), signal);
    }
  } finally {
    changes.close();
  }
}

/** Counts commits and other changes. One caller at a time can wait for the next change. */
export class Changes {
  count = 0;
  readonly close: () => void;
  #wake: (() => void) | null = null;

  constructor({ store }: OperationDeps, isWanted: (commit: Commit) => boolean = () => true) {
    this.close = store.onCommit((commit) => {
      if (isWanted(commit)) this.note();
    });
  }

  note(): void {
    this.count += 1;
    this.#wake?.();
  }

  /** Resolves when the count differs from `seen`, when `waitMs` have passed, or when aborted. */
  async since(seen: number, waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.count !== seen) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, waitMs);
    const stop = (): void => resolve();
    signal?.addEventListener("abort", stop, { once: true });
    this.#wake = resolve;
    await promise;
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    this.#wake = null;
  }
}
