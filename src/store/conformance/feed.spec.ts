import assert from "node:assert/strict";
import { it } from "node:test";
import type { EventRecord, SessionRecord, Store } from "../port/store.ts";
import { anEvent, aSession } from "../testing/sample.ts";

/** The guarantees that a client of the feed relies on. */
export function feedRules(fresh: () => Promise<Store>): void {
  it("events are numbered per tree from 1 without a gap, however many write at once", async () => {
    const store = await fresh();
    const roots = await someTrees(store, 5);
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => {
        const root = roots[i % roots.length] as SessionRecord;
        return store.write(root.id, async (tx) => {
          for (let n = 0; n <= i % 4; n++) tx.append(anEvent(root.id, { data: { i, n } }));
        });
      }),
    );
    for (const root of roots) {
      const events = await store.feed.ofTree(root.id, 0, 1_000);
      assert.deepEqual(
        events.map((event) => event.seq),
        events.map((_, i) => i + 1),
      );
      assert.equal((await store.read.trees.byId(root.id))?.seq, events.length);
      const paged = [
        ...(await store.feed.ofTree(root.id, 0, 7)),
        ...(await store.feed.ofTree(root.id, 7, 1_000)),
      ];
      assert.deepEqual(paged, events);
    }
  });

  it("an event comes back as it was appended, and many fit into one write", async () => {
    const store = await fresh();
    const [root] = await someTrees(store, 1);
    const rootId = root?.id ?? "";
    const appended = Array.from({ length: 150 }, (_, i) =>
      anEvent(rootId, { type: "turn.started", text: `né ${i}`, data: { i, deep: [null, { a: 1 }] } }),
    );
    await store.write(rootId, async (tx) => {
      for (const event of appended) tx.append(event);
    });
    const events = await store.feed.ofTree(rootId, 0, 1_000);
    const { xid } = events[0] as EventRecord;
    assert.deepEqual(
      events,
      appended.map((event, i) => ({ ...event, rootId, seq: i + 1, xid })),
    );
  });

  it("everything committed after a point has a number at or above it, and is found from it", async () => {
    const store = await fresh();
    const [quiet, loud] = (await someTrees(store, 2)) as [SessionRecord, SessionRecord];
    await store.write(quiet.id, async (tx) => tx.append(anEvent(quiet.id)));
    const { xmin } = await store.feed.point();
    assert.deepEqual(await store.feed.treesSince(xmin), []);
    assert.equal(await store.feed.firstSince(quiet.id, xmin), null);
    await store.write(loud.id, async (tx) => tx.append(anEvent(loud.id)));
    assert.deepEqual(await store.feed.treesSince(xmin), [{ rootId: loud.id, seq: 1 }]);
    assert.equal(await store.feed.firstSince(loud.id, xmin), 1);
  });

  it("a reader that resumes from points again and again misses nothing while others write", async () => {
    const store = await fresh();
    const roots = await someTrees(store, 6);
    let { xmin } = await store.feed.point();
    let writing = true;
    const writers = roots.flatMap((root) =>
      [0, 1, 2].map(async (writer) => {
        for (let i = 0; i < 25; i++) {
          const write = store.write(root.id, async (tx) => {
            await tx.sessions.patch(root.id, { title: `${writer} ${i}` });
            tx.append(anEvent(root.id, { data: { writer, i } }));
            if (i % 5 === 0) tx.append(anEvent(root.id));
            if (i % 7 === 3) throw new Error("taken back");
          });
          await (i % 7 === 3 ? assert.rejects(write, /taken back/) : write);
        }
      }),
    );
    const all = Promise.all(writers).finally(() => (writing = false));
    const seen = new Map<string, Set<number>>(roots.map((root) => [root.id, new Set()]));
    for (let last = false; ; last = !writing) {
      const next = await store.feed.point();
      for (const { rootId } of await store.feed.treesSince(xmin)) {
        const first = await store.feed.firstSince(rootId, xmin);
        if (first === null) continue;
        for (const event of await store.feed.ofTree(rootId, first - 1, 10_000))
          seen.get(rootId)?.add(event.seq);
      }
      xmin = next.xmin;
      if (last) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await all;
    for (const root of roots) {
      const written = await store.feed.ofTree(root.id, 0, 10_000);
      assert.deepEqual(
        [...(seen.get(root.id) ?? [])].toSorted((a, b) => a - b),
        written.map((event) => event.seq),
      );
      assert.ok(written.length > 70);
    }
  });
}

async function someTrees(store: Store, count: number): Promise<SessionRecord[]> {
  const roots = Array.from({ length: count }, () => aSession());
  await Promise.all(roots.map((root) => store.write(root.id, (tx) => tx.sessions.add(root))));
  return roots;
}
