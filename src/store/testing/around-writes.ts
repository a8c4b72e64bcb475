import { writeOver } from "../around-write.ts";
import type { Store, Tx } from "../port/store.ts";

type Work<T> = (tx: Tx) => Promise<T>;

/**
 * Lets a test wrap every write of a store, with or without a fence. Returns a function that removes the
 * wrapper.
 */
export function aroundWrites(
  store: Store,
  around: <T>(rootId: string, work: Work<T>, write: <R>(work: Work<R>) => Promise<R>) => Promise<T>,
): () => void {
  const { write: base } = store;
  const write = writeOver((rootId, by, work) =>
    around(rootId, work, <R>(inner: Work<R>) =>
      // The result may also be `STALE`. It is passed on, although it is not an `R`.
      by === null ? base(rootId, inner) : (base(rootId, by, inner) as Promise<R>),
    ),
  );
  Object.assign(store, { write });
  return () => void Object.assign(store, { write: base });
}

/** Runs `first` after the next write was requested and before it has the tree's lock. */
export function beforeNextWrite(store: Store, first: () => Promise<void>): void {
  const off = aroundWrites(store, async (_, work, write) => {
    off();
    await first();
    return write(work);
  });
}
