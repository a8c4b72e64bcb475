import assert from "node:assert/strict";
import { it } from "node:test";
import type { NewEntry, Store } from "../port/store.ts";
import { aSession } from "../testing/sample.ts";

const entry = (at: number, text = "text"): NewEntry => ({
  turnId: null,
  author: "agent",
  kind: "text",
  body: { text },
  isSubagent: false,
  at,
});

const by = "createdAt";

/** Which entries a store lets go, and what it knows of those that are gone. */
export function retentionRules(fresh: () => Promise<Store>): void {
  const withEntries = async (store: Store, ats: readonly number[], fields: object = {}) => {
    const session = aSession({ roundOpen: false, ...fields });
    await store.write(session.id, async (tx) => {
      await tx.sessions.add(session);
      await tx.entries.append(
        session.id,
        ats.map((at) => entry(at)),
      );
    });
    return session;
  };
  const indexes = async (store: Store, id: string) =>
    (await store.read.entries.page(id, { limit: 100 })).map(({ index }) => index);

  it("removes the oldest entries before a time, a few at once, and indexes stay as they were", async () => {
    const store = await fresh();
    const { id } = await withEntries(store, [10, 20, 30, 40, 50]);
    const prune = (limit: number) =>
      store.write(id, (tx) => tx.retention.prune(id, { olderThan: 40, bytesMin: null, limit }));
    assert.deepEqual(await prune(2), { removed: 2, bytes: 0, isDone: false });
    assert.equal(await store.read.retention.keptFrom(id), 2);
    assert.deepEqual(await prune(2), { removed: 1, bytes: 0, isDone: true });
    assert.deepEqual(await indexes(store, id), [3, 4]);
    assert.deepEqual(await prune(2), { removed: 0, bytes: 0, isDone: true });
    const [added] = await store.write(id, (tx) => tx.entries.append(id, [entry(60)]));
    assert.equal(added?.index, 5);
  });

  it("counts each entry once, and forgets what it removes", async () => {
    const store = await fresh();
    const { id } = await withEntries(store, [1, 2, 3, 4]);
    const measure = (limit: number) => store.write(id, (tx) => tx.retention.measure(id, limit));
    const first = await measure(3);
    assert.equal(first.isDone, false);
    const second = await measure(3);
    assert.equal(second.isDone, true);
    assert.deepEqual(await measure(3), { bytes: 0, isDone: true });
    const total = first.bytes + second.bytes;
    const [row] = await store.read.retention.sessions("default", { by, limit: 5 });
    assert.deepEqual([row?.id, row?.bytes, row?.measuredTo], [id, total, 4]);
    const gone = await store.write(id, (tx) =>
      tx.retention.prune(id, { olderThan: null, bytesMin: null, limit: 10 }),
    );
    assert.deepEqual(gone, { removed: 4, bytes: total, isDone: true });
    assert.deepEqual(await store.read.retention.sessions("default", { by, limit: 5 }), []);
  });

  it("removes the oldest entries of any age only until so many bytes are gone", async () => {
    const store = await fresh();
    const { id } = await withEntries(store, [10, 20, 30, 40, 50]);
    const { bytes } = await store.write(id, (tx) => tx.retention.measure(id, 10));
    const bytesMin = bytes / 5 + 1;
    const prune = { olderThan: null, bytesMin, limit: 10 };
    const gone = await store.write(id, (tx) => tx.retention.prune(id, prune));
    assert.deepEqual(gone, { removed: 2, bytes: (bytes / 5) * 2, isDone: true });
    assert.deepEqual(await indexes(store, id), [2, 3, 4]);
  });

  it("never removes what a session inherited", async () => {
    const store = await fresh();
    const session = aSession({ roundOpen: false });
    await store.write(session.id, async (tx) => {
      await tx.sessions.add(session);
      await tx.entries.append(session.id, [{ ...entry(1), kind: "inherited" }, entry(2), entry(3)]);
    });
    const prune = { olderThan: 3, bytesMin: null, limit: 10 };
    const gone = await store.write(session.id, (tx) => tx.retention.prune(session.id, prune));
    assert.equal(gone.removed, 1);
    assert.equal(await store.read.retention.keptFrom(session.id), 2);
    assert.deepEqual(await indexes(store, session.id), [0, 2]);
  });

  it("removes nothing of a session whose round is open", async () => {
    const store = await fresh();
    const { id } = await withEntries(store, [1, 2], { roundOpen: true });
    const gone = await store.write(id, (tx) =>
      tx.retention.prune(id, { olderThan: null, bytesMin: null, limit: 10 }),
    );
    assert.deepEqual(gone, { removed: 0, bytes: 0, isDone: true });
    assert.deepEqual(await indexes(store, id), [0, 1]);
  });

  it("lists the sessions of one scope, oldest first, in pages", async () => {
    const store = await fresh();
    const old = await withEntries(store, [1], { createdAt: 10, scope: "lab" });
    const young = await withEntries(store, [1], { createdAt: 20, scope: "lab" });
    await withEntries(store, [1], { createdAt: 5, scope: "team" });
    const [first] = await store.read.retention.sessions("lab", { by, limit: 1 });
    assert.equal(first?.id, old.id);
    const rest = await store.read.retention.sessions("lab", { by, limit: 5, after: first });
    assert.deepEqual(
      rest.map(({ id }) => id),
      [young.id],
    );
    assert.deepEqual(await store.read.retention.scopes(), ["lab", "team"]);
    await store.write(old.id, (tx) => tx.sessions.patch(old.id, { lastActivityAt: 3e12 }));
    const idle = await store.read.retention.sessions("lab", { by: "lastActivityAt", limit: 5 });
    assert.deepEqual(
      idle.map(({ id }) => id),
      [young.id, old.id],
    );
  });
}
