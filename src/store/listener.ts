import type { Fragment } from "../contract/index.ts";
import type { Log } from "../log.ts";
import type { Commit, Store } from "./port/store.ts";

export type Listeners = ReturnType<typeof newListeners>;

/** The listeners of a store. An error in one does not affect the others. */
export function newListeners(log: Log) {
  const commits = topicOf<Commit>(log);
  const fragments = topicOf<Fragment>(log);
  const importRequests = topicOf<void>(log);
  const probes = new Set<() => Promise<void>>();
  return {
    committed: commits.send,
    asked: importRequests.send,
    onAsk: importRequests.add,
    /** The part of the port that is the same for both databases. */
    port: {
      onCommit: commits.add,
      publish: fragments.send,
      onFragment: fragments.add,
      onProbe(listener) {
        probes.add(listener);
        return () => probes.delete(listener);
      },
      async probe() {
        for (const probe of await Promise.allSettled([...probes].map((listener) => listener()))) {
          if (probe.status === "rejected")
            log.error({ error: String(probe.reason) }, "probing the agents failed");
        }
      },
    } satisfies Partial<Store>,
  };
}

function topicOf<T>(log: Log) {
  const listeners = new Set<(value: T) => void>();
  return {
    add(listener: (value: T) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    send(value: T): void {
      for (const listener of listeners) {
        try {
          listener(value);
        } catch (error) {
          log.error({ error: String(error) }, "a store listener threw an error");
        }
      }
    },
  };
}
