import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { uuidv7 } from "uuidv7";
import { type Agent, Refusal } from "../../contract/index.ts";
import { createFakeDriver } from "../../drivers/fake/driver.ts";
import { budgetRules } from "./budget.spec.ts";
import { draftRules } from "./draft.spec.ts";
import { feedRules } from "./feed.spec.ts";
import { fenceRules } from "./fence.spec.ts";
import { historyRules } from "./history.spec.ts";
import type { Commit, Store } from "../port/store.ts";
import { checkpointRules } from "./checkpoint.spec.ts";
import { recordRules } from "./record.spec.ts";
import { retentionRules } from "./retention.spec.ts";
import { secretRules } from "./secret.spec.ts";
import { searchRules } from "./search.spec.ts";
import { aChild, aMessage, anEvent, aSession } from "../testing/sample.ts";

/** A database for one store. While the store is open, a second `open` must be refused. */
export interface TestDatabase {
  open(): Promise<Store>;
  remove(): Promise<void>;
}

export interface Suite {
  readonly name: string;
  database(): Promise<TestDatabase>;
}

export function storeSuite(suite: Suite): void {
  describe(`the ${suite.name} store`, () => {
    const opened: { store: Store; database: TestDatabase }[] = [];
    const fresh = async (): Promise<Store> => {
      const database = await suite.database();
      const store = await database.open();
      opened.push({ store, database });
      return store;
    };
    afterEach(async () => {
      for (const { store, database } of opened.splice(0)) {
        await store.close();
        await database.remove();
      }
    });
    writeRules(fresh);
    lockRules(fresh);
    fenceRules(fresh);
    keyRules(fresh);
    wakeRules(fresh);
    lifeRules(suite);
    recordRules(fresh);
    budgetRules(fresh);
    historyRules(fresh);
    checkpointRules(fresh);
    draftRules(fresh);
    retentionRules(fresh);
    feedRules(fresh);
    searchRules(fresh);
    secretRules(fresh);
  });
}

export type Fresh = () => Promise<Store>;

export async function aTree(store: Store): Promise<ReturnType<typeof aSession>> {
  const root = aSession();
  await store.write(root.id, (tx) => tx.sessions.add(root));
  return root;
}

function writeRules(fresh: Fresh): void {
  it("a write that throws changes nothing and rejects with what was thrown", async () => {
    const store = await fresh();
    const root = await aTree(store);
    const refusal = new Refusal("limit_depth", "no");
    const write = store.write(root.id, async (tx) => {
      await tx.sessions.patch(root.id, { title: "changed" });
      await tx.messages.add(aMessage(root.id));
      tx.append(anEvent(root.id));
      tx.wake(root.id);
      throw refusal;
    });
    await assert.rejects(write, (error) => error === refusal);
    assert.deepEqual(await store.read.sessions.byId(root.id), root);
    assert.equal(await store.read.messages.openCount(root.id), 0);
    assert.deepEqual(await store.feed.ofTree(root.id, 0, 10), []);
  });

  it("a write that fails leaves those beside it untouched", async () => {
    const store = await fresh();
    const root = await aTree(store);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) =>
        store.write(root.id, async (tx) => {
          await tx.messages.add(aMessage(root.id, { body: String(i) }));
          tx.append(anEvent(root.id));
          if (i % 2 === 1) throw new Error("odd");
          return i;
        }),
      ),
    );
    outcomes.forEach((outcome, i) => assert.equal(outcome.status, i % 2 === 1 ? "rejected" : "fulfilled"));
    const kept = await store.read.messages.queued(root.id, 100);
    assert.deepEqual(
      kept.map((message) => [message.position, message.body]),
      Array.from({ length: 10 }, (_, i) => [i, String(i * 2)]),
    );
    const events = await store.feed.ofTree(root.id, 0, 100);
    assert.deepEqual(
      events.map((event) => event.seq),
      Array.from({ length: 10 }, (_, i) => i + 1),
    );
  });

  it("a statement that failed fails its write, also where the closure swallowed the error", async () => {
    const store = await fresh();
    const root = await aTree(store);
    const write = store.write(root.id, async (tx) => {
      await tx.sessions.patch(root.id, { title: "changed" });
      // Swallowing the error is the subject of this test.
      await tx.sessions.add(root).catch(() => undefined);
    });
    await assert.rejects(write);
    assert.equal((await store.read.sessions.byId(root.id))?.title, null);
  });

  it("a transaction cannot be used after its write has ended", async () => {
    const store = await fresh();
    const root = await aTree(store);
    const kept = await store.write(root.id, async (tx) => ({ tx }));
    await assert.rejects(kept.tx.sessions.patch(root.id, { title: "late" }), /ended/);
    assert.throws(() => kept.tx.append(anEvent(root.id)), /ended/);
    assert.throws(() => kept.tx.wake(root.id), /ended/);
    assert.equal((await store.read.sessions.byId(root.id))?.title, null);
  });

  it("what a write answered is seen by every later read", async () => {
    const store = await fresh();
    const root = await aTree(store);
    for (let i = 0; i < 50; i++) {
      await store.write(root.id, (tx) => tx.sessions.patch(root.id, { title: String(i) }));
      assert.equal((await store.read.sessions.byId(root.id))?.title, String(i));
    }
  });

  it("a session of another tree cannot be written", async () => {
    const store = await fresh();
    const [one, two] = [await aTree(store), await aTree(store)];
    await assert.rejects(store.write(one.id, (tx) => tx.sessions.patch(two.id, { title: "x" })));
    await assert.rejects(store.write(one.id, (tx) => tx.messages.add(aMessage(two.id))));
    await assert.rejects(store.write(one.id, (tx) => tx.sessions.add(aSession())));
  });
}

function lockRules(fresh: Fresh): void {
  it("a limit of 8 checked inside the write admits exactly 8 of 64 at once", async () => {
    const store = await fresh();
    const root = await aTree(store);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 64 }, () =>
        store.write(root.id, async (tx) => {
          const open = await tx.sessions.openChildren(root.id);
          if (open.length >= 8) throw new Refusal("limit_children", "full");
          await tx.sessions.add(aChild(root));
          return tx.tree.countSpawn();
        }),
      ),
    );
    const admitted = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    assert.deepEqual(admitted.toSorted(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert.equal((await store.read.sessions.openChildren(root.id)).length, 8);
    assert.equal((await store.read.trees.byId(root.id))?.spawnCount, 8);
  });

  it("writes of many trees at once all arrive", async () => {
    const store = await fresh();
    const roots = await Promise.all(Array.from({ length: 40 }, () => aTree(store)));
    await Promise.all(
      roots.flatMap((root) =>
        Array.from({ length: 5 }, () =>
          store.write(root.id, async (tx) => {
            await tx.messages.add(aMessage(root.id));
          }),
        ),
      ),
    );
    for (const root of roots) {
      const record = await store.read.sessions.byId(root.id);
      assert.deepEqual([record?.messageCount, record?.positionCount], [5, 5]);
    }
  });
}

function keyRules(fresh: Fresh): void {
  it("the same key sent 50 times at once by roots of different trees makes one session", async () => {
    const store = await fresh();
    const made = await Promise.all(
      Array.from({ length: 50 }, () => {
        const root = aSession({ key: "k", keyCaller: "person:1", keyHash: "h" });
        return store.write(root.id, async (tx) => {
          const existing = await tx.sessions.byKey("person:1", "k");
          if (existing !== null) return existing.id;
          await tx.sessions.add(root);
          return root.id;
        });
      }),
    );
    assert.equal(new Set(made).size, 1);
    assert.equal((await store.read.sessions.byKey("person:1", "k"))?.id, made[0]);
  });

  it("a key is one caller's own", async () => {
    const store = await fresh();
    const root = await aTree(store);
    await store.write(root.id, async (tx) => {
      for (const keyCaller of ["a", "b"]) await tx.messages.add(aMessage(root.id, { key: "k", keyCaller }));
    });
    assert.equal((await store.read.messages.byKey("a", "k"))?.keyCaller, "a");
    assert.equal((await store.read.messages.byKey("b", "k"))?.keyCaller, "b");
    const again = aMessage(root.id, { key: "k", keyCaller: "a" });
    await assert.rejects(store.write(root.id, (tx) => tx.messages.add(again)));
  });

  it("a callback key is unique per session", async () => {
    const store = await fresh();
    const root = await aTree(store);
    const child = aChild(root);
    const callback = () => aMessage(root.id, { callbackKey: `${child.id}:1`, kind: "callback", body: null });
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(child);
      await tx.messages.add(callback());
      await tx.messages.add({ ...callback(), sessionId: child.id });
    });
    await assert.rejects(store.write(root.id, (tx) => tx.messages.add(callback())));
    assert.equal((await store.read.messages.queued(root.id, 10)).length, 1);
  });
}

function wakeRules(fresh: Fresh): void {
  it("a wake comes after the commit, and none from a write that failed", async () => {
    const store = await fresh();
    const root = await aTree(store);
    const commits: Commit[] = [];
    const stop = store.onCommit((commit) => commits.push(commit));
    await store.write(root.id, async (tx) => {
      tx.wake(root.id);
      await tx.sessions.patch(root.id, { title: "woken" });
      assert.deepEqual(commits, []);
    });
    assert.deepEqual(commits, [{ rootIds: [root.id], wakes: [root.id] }]);
    const failed = store.write(root.id, async (tx) => {
      tx.wake(root.id);
      throw new Error("no");
    });
    await assert.rejects(failed);
    stop();
    await store.write(root.id, async (tx) => tx.wake(root.id));
    assert.equal(commits.length, 1);
  });

  it("a listener that throws harms neither the write nor the others", async () => {
    const store = await fresh();
    const root = await aTree(store);
    let heard = 0;
    store.onCommit(() => {
      throw new Error("a bug of the listener");
    });
    store.onCommit(() => (heard += 1));
    await store.write(root.id, async (tx) => tx.wake(root.id));
    assert.equal(heard, 1);
  });

  it("live text reaches listeners and is kept nowhere", async () => {
    const store = await fresh();
    const root = await aTree(store);
    const heard: string[] = [];
    store.onFragment((fragment) => heard.push(fragment.text));
    store.publish({ rootId: root.id, sessionId: root.id, turnId: uuidv7(), kind: "text", text: "hel" });
    assert.deepEqual(heard, ["hel"]);
    assert.deepEqual(await store.feed.ofTree(root.id, 0, 10), []);
  });
}

function lifeRules(suite: Suite): void {
  it("a store closed and opened again has the same epoch and everything that was in it", async () => {
    const database = await suite.database();
    const first = await database.open();
    const root = await aTree(first);
    await first.write(root.id, async (tx) => tx.append(anEvent(root.id)));
    const { xmin } = await first.feed.point();
    await first.close();
    const second = await database.open();
    assert.equal(second.epoch, first.epoch);
    assert.deepEqual(await second.read.sessions.byId(root.id), root);
    await second.write(root.id, async (tx) => tx.append(anEvent(root.id)));
    assert.equal(await second.feed.firstSince(root.id, xmin), 2);
    await second.close();
    await database.remove();
  });

  it("a store that is closing finishes what it took and refuses what comes", async () => {
    const database = await suite.database();
    const store = await database.open();
    const root = await aTree(store);
    const taken = store.write(root.id, (tx) => tx.sessions.patch(root.id, { title: "taken" }));
    const closing = store.close();
    const late = store.write(root.id, (tx) => tx.sessions.patch(root.id, { title: "late" }));
    await assert.rejects(late, { code: "shutting_down" });
    await taken;
    await closing;
    const again = await database.open();
    assert.equal((await again.read.sessions.byId(root.id))?.title, "taken");
    await again.close();
    await database.remove();
  });

  it("a node's boots follow each other, and what its agents can do is published", async () => {
    const database = await suite.database();
    const store = await database.open();
    assert.deepEqual(await store.nodes.register([]), { previousBoot: null });
    assert.equal(await store.nodes.renew(), true);
    await store.close();
    const next = await database.open();
    assert.deepEqual(await next.nodes.register([]), { previousBoot: store.boot });
    assert.equal((await next.nodes.byName(next.node))?.boot, next.boot);
    assert.equal(await next.nodes.byName("elsewhere"), null);
    await next.close();
    await database.remove();
  });

  it("who asks for a look at the agents reads what it found, and is never failed by it", async () => {
    const database = await suite.database();
    const store = await database.open();
    await store.nodes.register([]);
    await store.probe();
    const agent: Agent = await createFakeDriver().probe();
    const off = store.onProbe(() => store.nodes.publish([agent]));
    await store.probe();
    assert.deepEqual((await store.nodes.byName(store.node))?.agents, [agent]);
    off();
    store.onProbe(() => Promise.reject(new Error("a driver has a bug")));
    await store.probe();
    await store.close();
    await database.remove();
  });
}
