import assert from "node:assert/strict";
import { it } from "node:test";
import { uuidv7 } from "uuidv7";
import type { CheckpointRecord, EntryRecord, NewEntry, SessionRecord, Store } from "../port/store.ts";
import { aChild, aSession } from "../testing/sample.ts";

/** How the store finds what a brief contains: checkpoints, all ancestors' constraints, the newest entries. */
export function checkpointRules(fresh: () => Promise<Store>): void {
  it("the newest checkpoint of each kind is found, by its place in the transcript", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const older = checkpoint(root, { entryIndex: 3, at: 9 });
    const newer = checkpoint(root, { entryIndex: 5, at: 1 });
    const compaction = checkpoint(root, { kind: "compaction", entryIndex: 4 });
    await store.write(root.id, async (tx) => {
      for (const each of [newer, older, compaction]) await tx.checkpoints.add(each);
    });
    const latest = await store.read.checkpoints.latest(root.id);
    assert.deepEqual(latest, { explicit: newer, compaction, automatic: null });
    assert.deepEqual(await store.read.checkpoints.latest(uuidv7()), {
      explicit: null,
      compaction: null,
      automatic: null,
    });
  });

  it("there is one automatic checkpoint of a session", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const [first, second] = [checkpoint(root, { summary: "one" }), checkpoint(root, { summary: "two" })];
    await store.write(root.id, (tx) => tx.checkpoints.replaceAutomatic(first));
    await store.write(root.id, (tx) => tx.checkpoints.replaceAutomatic(second));
    assert.deepEqual(await store.read.checkpoints.ofSession(root.id), [{ ...second, kind: "automatic" }]);
  });

  it("constraints of all generations above are found, the root's first, of each the newest", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const child = aChild(root);
    const grandchild = aChild(child);
    const sibling = aChild(root);
    await store.write(root.id, async (tx) => {
      for (const each of [child, grandchild, sibling]) await tx.sessions.add(each);
      await tx.checkpoints.add(checkpoint(root, { entryIndex: 1, constraints: { a: "old" } }));
      await tx.checkpoints.add(checkpoint(root, { entryIndex: 2, constraints: { a: "new" } }));
      await tx.checkpoints.add(checkpoint(root, { kind: "compaction", entryIndex: 3 }));
      await tx.checkpoints.add(checkpoint(child, { constraints: { b: "its own" } }));
      await tx.checkpoints.add(checkpoint(sibling, { constraints: { c: "not above" } }));
      await tx.checkpoints.add(checkpoint(grandchild, { constraints: { d: "not above itself" } }));
    });
    assert.deepEqual(await store.read.checkpoints.constraintsAbove(grandchild.id), [
      { sessionId: root.id, constraints: { a: "new" } },
      { sessionId: child.id, constraints: { b: "its own" } },
    ]);
    assert.deepEqual(await store.read.checkpoints.constraintsAbove(root.id), []);
  });

  it("the tail of a transcript is bounded by bytes and rows, and always has the newest", async () => {
    const { tail, append } = await transcript(await fresh());
    assert.deepEqual(await tail({}), []);
    const said = ["a".repeat(10), "é".repeat(400), "c".repeat(400)];
    const added = await append(said.map((text) => entry(text)));
    assert.deepEqual(await tail({}), added);
    assert.deepEqual(await tail({ limit: 2 }), added.slice(1));
    assert.deepEqual(await tail({ bytesMax: 1_000 }), added.slice(2));
    assert.deepEqual(await tail({ bytesMax: 10 }), added.slice(2));
    assert.deepEqual(await tail({ after: 1 }), added.slice(2));
    assert.deepEqual(await tail({ before: 2 }), added.slice(0, 2));
    assert.deepEqual(await tail({ before: 2, after: 0, limit: 1 }), added.slice(1, 2));
    assert.deepEqual(await tail({ after: 2 }), []);
  });

  it("a long entry counts for no more than asked, and other kinds for nothing, in the tail of a transcript", async () => {
    const { tail, append } = await transcript(await fresh());
    const said = [
      entry("first"),
      entry("x".repeat(5_000)),
      entry("y".repeat(5_000), "thought"),
      entry("last"),
    ];
    const [first, long, , last] = await append(said);
    assert.deepEqual(await tail({ bytesMax: 500, entryBytesMax: 300 }), [first, long, last]);
    assert.deepEqual(await tail({ bytesMax: 300, entryBytesMax: 300 }), [last]);
    assert.deepEqual(await tail({ limit: 2 }), [long, last]);
  });
}

type Tail = Parameters<Store["read"]["entries"]["tail"]>[1];

async function transcript(store: Store): Promise<{
  tail(of: Partial<Tail>): Promise<EntryRecord[]>;
  append(entries: readonly NewEntry[]): Promise<EntryRecord[]>;
}> {
  const root = await treeOf(store);
  const all = { after: -1, before: 1_000, bytesMax: 1_000_000, entryBytesMax: 1_000_000, limit: 64 };
  return {
    tail: (of) => store.read.entries.tail(root.id, { kinds: ["text"], ...all, ...of }),
    append: (entries) => store.write(root.id, (tx) => tx.entries.append(root.id, entries)),
  };
}

async function treeOf(store: Store): Promise<SessionRecord> {
  const root = aSession();
  await store.write(root.id, (tx) => tx.sessions.add(root));
  return root;
}

function checkpoint(session: SessionRecord, own: Partial<CheckpointRecord> = {}): CheckpointRecord {
  return {
    id: uuidv7(),
    rootId: session.rootId,
    sessionId: session.id,
    turnId: null,
    kind: "explicit",
    summary: "so far",
    entities: ["a"],
    constraints: {},
    entryIndex: 0,
    at: 1,
    ...own,
  };
}

function entry(text: string, kind: NewEntry["kind"] = "text"): NewEntry {
  return { turnId: null, author: "agent", kind, body: { text }, isSubagent: false, at: 1 };
}
