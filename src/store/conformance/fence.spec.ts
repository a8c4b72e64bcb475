import assert from "node:assert/strict";
import { it } from "node:test";
import { type Commit, STALE, type Store } from "../port/store.ts";
import { aChild, aMessage, anEvent, aSession } from "../testing/sample.ts";
import type { Fresh } from "./store.spec.ts";

/** A store refuses the writes of a process after a newer process has replaced it. */
export function fenceRules(fresh: Fresh): void {
  it("a write with the session's fence is done and answered with what the closure returned", async () => {
    const store = await fresh();
    const root = await treeAt(store, 3);
    const by = { session: root.id, fence: 3 };
    const answer = await store.write(root.id, by, async (tx) => {
      await tx.sessions.patch(root.id, { title: "written" });
      return "done";
    });
    assert.equal(answer, "done");
    assert.equal((await store.read.sessions.byId(root.id))?.title, "written");
  });

  it("a late writer writes nothing, wakes no session, and receives STALE", async () => {
    const store = await fresh();
    const root = await treeAt(store, 3);
    const commits: Commit[] = [];
    store.onCommit((commit) => commits.push(commit));
    let ran = 0;
    for (const fence of [2, 4]) {
      const answer = await store.write(root.id, { session: root.id, fence }, async (tx) => {
        ran += 1;
        await tx.sessions.patch(root.id, { title: "late" });
        await tx.messages.add(aMessage(root.id));
        tx.append(anEvent(root.id));
        tx.wake(root.id);
      });
      assert.equal(answer, STALE);
    }
    assert.equal(ran, 0, "its closure does not run");
    assert.deepEqual(await store.read.sessions.byId(root.id), root);
    assert.equal(await store.read.messages.openCount(root.id), 0);
    assert.deepEqual(await store.feed.ofTree(root.id, 0, 10), []);
    assert.deepEqual(commits, []);
  });

  it("a writer for a session that is not in the tree is late, and makes no tree", async () => {
    const store = await fresh();
    const [root, other] = [await treeAt(store, 1), await treeAt(store, 1)];
    const work = async (): Promise<void> => undefined;
    assert.equal(await store.write(root.id, { session: other.id, fence: 1 }, work), STALE);
    const { id: unknown } = aSession();
    assert.equal(await store.write(unknown, { session: unknown, fence: 0 }, work), STALE);
    assert.equal(await store.read.trees.byId(unknown), null);
  });

  it("the fence of one session says nothing about another of its tree", async () => {
    const store = await fresh();
    const root = await treeAt(store, 3);
    const child = aChild(root, { fence: 1 });
    await store.write(root.id, (tx) => tx.sessions.add(child));
    const touch = (session: string, fence: number) =>
      store.write(root.id, { session, fence }, async () => "written");
    assert.equal(await touch(child.id, 1), "written");
    assert.equal(await touch(child.id, 3), STALE);
  });

  it("of writers that wait for a tree while its fence is raised, the older ones are late", async () => {
    const store = await fresh();
    const root = await treeAt(store, 1);
    const by = { session: root.id, fence: 1 };
    const add = (body: string) =>
      store.write(root.id, by, async (tx) => void (await tx.messages.add(aMessage(root.id, { body }))));
    const before = Array.from({ length: 5 }, (_, i) => add(`before ${i}`));
    const raised = store.write(root.id, by, (tx) => tx.sessions.patch(root.id, { fence: 2 }));
    const after = Array.from({ length: 5 }, (_, i) => add(`after ${i}`));
    assert.deepEqual(await Promise.all(before), Array(5).fill(undefined));
    assert.notEqual(await raised, STALE);
    assert.deepEqual(await Promise.all(after), Array(5).fill(STALE));
    const kept = await store.read.messages.queued(root.id, 100);
    assert.deepEqual(
      kept.map(({ body }) => body),
      Array.from({ length: 5 }, (_, i) => `before ${i}`),
    );
  });
}

async function treeAt(store: Store, fence: number): Promise<ReturnType<typeof aSession>> {
  const root = aSession({ fence });
  await store.write(root.id, (tx) => tx.sessions.add(root));
  return root;
}
