import assert from "node:assert/strict";
import { it } from "node:test";
import { parseQuery } from "../../search/query.ts";
import type { EntryHit, NewEntry, SessionRecord, Store, TurnRecord } from "../port/store.ts";
import { aSession, aTurn } from "../testing/sample.ts";

type Fresh = () => Promise<Store>;

const AT = 1_790_000_000_000;

/**
 * The contract of drafts: a draft is the message that a turn is writing, shown as the entry it will become.
 */
export function draftRules(fresh: Fresh): void {
  it("a draft is the entry it will become, marked open, behind the last entry", async () => {
    const { store, root, turn } = await begun(fresh);
    assert.equal(await store.read.drafts.ofSession(root.id), null);
    const index = await store.write(root.id, async (tx) => {
      await tx.entries.append(root.id, [said(turn, "before")]);
      return tx.drafts.put(draft(turn, "I am ", "writing"));
    });
    const open = await store.read.drafts.ofSession(root.id);
    const { id: turnId } = turn;
    assert.deepEqual(open, {
      rootId: root.id,
      sessionId: root.id,
      index: 1,
      turnId,
      author: "agent",
      kind: "text",
      body: { text: "I am writing", open: true },
      isSubagent: false,
      at: AT,
    });
    assert.equal(index, 1);
    assert.equal((await store.read.entries.page(root.id, { limit: 9 })).length, 1);
    await store.write(root.id, (tx) => tx.entries.append(root.id, [said(turn, "steered")]));
    assert.equal((await store.read.drafts.ofSession(root.id))?.index, 2, "what comes between moves it on");
  });

  it("a draft grows by what is added, and its end is replaced", async () => {
    const { store, root, turn } = await begun(fresh);
    await store.write(root.id, (tx) => tx.drafts.put(draft(turn, "one ", "tw")));
    const grow = (of: Pick<TurnRecord, "id" | "sessionId">) =>
      store.write(root.id, (tx) => tx.drafts.grow(of, { text: "two 👩‍👩‍👧 ", end: "thr", at: AT + 5 }));
    assert.equal(await grow(turn), true);
    assert.equal(await grow({ ...turn, id: "another" }), false);
    assert.equal((await store.read.drafts.ofSession(root.id))?.body.text, "one two 👩‍👩‍👧 thr");
    await store.write(root.id, (tx) => tx.drafts.put(draft(turn, "anew", "")));
    assert.equal((await store.read.drafts.ofSession(root.id))?.body.text, "anew");
    await store.write(root.id, (tx) => tx.drafts.remove(root.id));
    assert.equal(await store.read.drafts.ofSession(root.id), null);
  });

  it("a draft is kept without secrets", async () => {
    const { store, root, turn } = await begun(fresh);
    const secret = ["ghp", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].join("_");
    await store.write(root.id, async (tx) => {
      await tx.drafts.put(draft(turn, `first ${secret} `, ""));
      await tx.drafts.grow(turn, { text: `then ${secret} `, end: secret, at: AT });
    });
    const text = (await store.read.drafts.ofSession(root.id))?.body.text ?? "";
    assert.equal(text.includes(secret), false);
    assert.equal(text.split("[redacted: ").length, 4);
  });

  it("an agent has begun to work in an attempt with its first entry or draft since then", async () => {
    const { store, root, turn } = await begun(fresh);
    const isBegun = (attemptFrom: number) => store.read.drafts.hasBegun({ ...turn, attemptFrom });
    await store.write(root.id, (tx) =>
      tx.entries.append(root.id, [{ ...said(turn, "do it"), author: "person" }]),
    );
    assert.equal(await isBegun(0), false, "what it was told is no work of its own");
    await store.write(root.id, (tx) => tx.entries.append(root.id, [said(turn, "working")]));
    assert.deepEqual([await isBegun(0), await isBegun(1), await isBegun(2)], [true, true, false]);
    await store.write(root.id, (tx) => tx.drafts.put(draft(turn, "again", "")));
    assert.equal(await isBegun(2), true);
  });

  it("an agent has begun to work in an attempt once it has reported or called something in it", async () => {
    const { store, root, turn } = await begun(fresh);
    for (const sign of ["reportedAttempt", "servedAttempt"] as const) {
      await store.write(root.id, (tx) => tx.turns.patchRunning(turn.id, turn.fence, { [sign]: 2 }));
      const row = (await store.read.turns.byId(turn.id))!;
      const isBegun = (attempt: number) => store.read.drafts.hasBegun({ ...row, attempt });
      assert.deepEqual([await isBegun(2), await isBegun(3)], [true, false]);
      await store.write(root.id, (tx) => tx.turns.patchRunning(turn.id, turn.fence, { [sign]: 0 }));
    }
  });

  it("a search finds a draft where its session may be seen, and its entry once it has ended", async () => {
    const { store, root, turn } = await begun(fresh);
    const find = async (query: string, visible: "all" | string[] = "all"): Promise<readonly EntryHit[]> => {
      const parsed = parseQuery(query, AT);
      assert.ok(parsed.isOk);
      const of = { sessionId: null, rootId: null, sort: "relevance", limit: 10, from: null } as const;
      return (await store.search({ ...of, query: parsed.query, visible, now: AT + 1_000 })).hits;
    };
    await store.write(root.id, async (tx) => {
      await tx.entries.append(root.id, [said(turn, "marmalade before")]);
      await tx.drafts.put(draft(turn, "more mar", "malade"));
    });
    const marks = (hits: readonly EntryHit[]) => hits.map(({ index, open }) => [index, open ?? false]);
    assert.deepEqual(marks(await find("marmalade")).toSorted(), [
      [0, false],
      [1, true],
    ]);
    assert.deepEqual(marks(await find("more")), [[1, true]]);
    assert.deepEqual(marks(await find("more sort:newest author:agent")), [[1, true]]);
    assert.deepEqual(await find("more", ["elsewhere"]), []);
    assert.deepEqual(await find("more -marmalade"), []);
    await store.write(root.id, async (tx) => {
      await tx.drafts.remove(root.id);
      await tx.entries.append(root.id, [said(turn, "more marmalade")]);
    });
    assert.deepEqual(marks(await find("more")), [[1, false]]);
  });
}

async function begun(fresh: Fresh): Promise<{ store: Store; root: SessionRecord; turn: TurnRecord }> {
  const store = await fresh();
  const root = aSession();
  const turn = await store.write(root.id, async (tx) => {
    await tx.sessions.add(root);
    return tx.turns.add(aTurn(root.id));
  });
  return { store, root, turn };
}

function draft({ sessionId, id: turnId }: TurnRecord, text: string, end: string) {
  return { sessionId, turnId, kind: "text", text, end, at: AT, updatedAt: AT } as const;
}

function said(turn: TurnRecord, text: string): NewEntry {
  return { turnId: turn.id, author: "agent", kind: "text", body: { text }, isSubagent: false, at: AT };
}
