import assert from "node:assert/strict";
import { it } from "node:test";
import type { NewEntry, SessionRecord, Store } from "../port/store.ts";
import { aChild, anEvent, aSession } from "../testing/sample.ts";

const entry = (at: number, text = "text"): NewEntry => ({
  turnId: null,
  author: "agent",
  kind: "text",
  body: { text },
  isSubagent: false,
  at,
});

const by = "createdAt";

/** Which entries a store removes, and what it still knows about them. */
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

  it("removes the oldest entries of any age only until enough bytes are freed", async () => {
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

  eventRules(fresh);
}

/** Which events a store removes. */
function eventRules(fresh: () => Promise<Store>): void {
  const withEvents = async (store: Store, ats: readonly number[], fields: Partial<SessionRecord> = {}) => {
    const session = aSession({ roundOpen: false, lastActivityAt: 50, ...fields });
    await store.write(session.rootId, (tx) => tx.sessions.add(session));
    for (const at of ats) {
      await store.write(session.rootId, async (tx) => tx.append(anEvent(session.id, { at })));
    }
    return session;
  };
  const seqs = async (store: Store, rootId: string) =>
    (await store.feed.ofTree(rootId, 0, 100)).map(({ seq }) => seq);
  const prune = (store: Store, rootId: string, of: { xidBelow?: number; limit?: number } = {}) =>
    store.write(rootId, (tx) =>
      tx.retention.pruneEvents({ idleSince: 100, xidBelow: Number.MAX_SAFE_INTEGER, limit: 10, ...of }),
    );
  const nothing = { removed: 0, isDone: true };

  it("removes the events of an idle tree, oldest first, a few at once, and goes on counting", async () => {
    const store = await fresh();
    const { id } = await withEvents(store, [10, 20, 30, 40, 50]);
    const other = await withEvents(store, [10]);
    assert.deepEqual(await prune(store, id, { limit: 3 }), { removed: 3, isDone: false });
    assert.deepEqual(await seqs(store, id), [4, 5]);
    assert.deepEqual(await prune(store, id, { limit: 3 }), { removed: 2, isDone: true });
    assert.deepEqual(await seqs(store, id), []);
    assert.deepEqual(await seqs(store, other.id), [1]);
    await store.write(id, async (tx) => tx.append(anEvent(id, { at: 200 })));
    assert.deepEqual(await seqs(store, id), [6]);
  });

  it("keeps the events of a tree that was at work since then, or of which a round is open", async () => {
    const store = await fresh();
    const active = await withEvents(store, [10], { lastActivityAt: 100 });
    const root = await withEvents(store, [10]);
    const child = aChild(root, { roundOpen: true, lastActivityAt: 50 });
    await store.write(root.id, (tx) => tx.sessions.add(child));
    assert.deepEqual(await prune(store, active.id), nothing);
    assert.deepEqual(await prune(store, root.id), nothing);
    await store.write(root.id, (tx) => tx.sessions.patch(child.id, { roundOpen: false }));
    assert.deepEqual(await prune(store, root.id), { removed: 1, isDone: true });
  });

  it("keeps events that are younger, and those from a transaction number on", async () => {
    const store = await fresh();
    const young = await withEvents(store, [10, 100, 20]);
    assert.deepEqual(await prune(store, young.id), { removed: 1, isDone: true });
    assert.deepEqual(await seqs(store, young.id), [2, 3]);
    const unwritten = await withEvents(store, [10, 20, 30]);
    const [, second] = await store.feed.ofTree(unwritten.id, 0, 10);
    assert.deepEqual(await prune(store, unwritten.id, { xidBelow: second!.xid }), {
      removed: 1,
      isDone: true,
    });
    assert.deepEqual(await seqs(store, unwritten.id), [2, 3]);
  });

  it("knows up to which transaction number events are gone", async () => {
    const store = await fresh();
    const { id } = await withEvents(store, [10, 20, 30]);
    const events = await store.feed.ofTree(id, 0, 10);
    const pruned = async () => (await store.read.trees.byId(id))?.prunedXid;
    assert.equal(await pruned(), 0);
    await prune(store, id, { limit: 2 });
    assert.equal(await pruned(), events[1]!.xid);
    await prune(store, id, { limit: 2 });
    assert.equal(await pruned(), events[2]!.xid);
  });

  it("says of every tree, in pages, whether it has been idle and still has events", async () => {
    const store = await fresh();
    const idle = await withEvents(store, [10]);
    const active = await withEvents(store, [10], { lastActivityAt: 100 });
    const pruned = await withEvents(store, [10]);
    await prune(store, pruned.id);
    const page = (after: string, limit: number) =>
      store.read.retention.trees({ idleSince: 100, after, limit });
    const first = await page("", 2);
    assert.deepEqual(first, [
      { rootId: idle.id, isIdle: true },
      { rootId: active.id, isIdle: false },
    ]);
    assert.deepEqual(await page(active.id, 2), [{ rootId: pruned.id, isIdle: false }]);
  });
}
