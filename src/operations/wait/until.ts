import type { OperationDeps } from "../deps.ts";

/** Calls `ask` after every commit to the tree, and every two seconds, until it answers or time is up. */
export async function until<T>(
  deps: OperationDeps,
  scope: { rootId: string; timeoutMs: number; signal?: AbortSignal },
  ask: () => Promise<T | null>,
): Promise<T | null> {
  const { rootId, timeoutMs, signal } = scope;
  const deadline = performance.now() + timeoutMs;
  const changes = new Changes(deps, rootId);
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

class Changes {
  count = 0;
  readonly #off: () => void;
  #wake: (() => void) | null = null;

  constructor(deps: OperationDeps, rootId: string) {
    this.#off = deps.store.onCommit((commit) => {
      if (!commit.rootIds.includes(rootId)) return;
      this.count += 1;
      this.#wake?.();
    });
  }

  since(seen: number, waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (this.count !== seen) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        this.#wake = null;
        resolve();
      };
      const timer = setTimeout(done, waitMs);
      signal?.addEventListener("abort", done, { once: true });
      this.#wake = done;
    });
  }

  close(): void {
    this.#off();
  }
}
