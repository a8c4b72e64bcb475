import assert from "node:assert/strict";
import { it } from "node:test";
import type { Usage } from "../../contract/index.ts";
import type { SessionRecord, Store, TurnRecord } from "../port/store.ts";
import { aChild, aMessage, aSession, aTurn } from "../testing/sample.ts";

/** How the store counts usage against budgets, and when it returns a parked session. */
export function budgetRules(fresh: () => Promise<Store>): void {
  it("what is spent below a session is of it and of all managed ones below it, settled and held", async () => {
    const store = await fresh();
    const root = aSession();
    const child = aChild(root);
    const grandchild = aChild(child, { detachedAt: 5 });
    const sibling = aChild(root);
    const imported = aChild(child, { origin: "imported" });
    const held = aTurn(grandchild.id, { reservedTokens: 40, reservedUsd: 0.5 });
    await store.write(root.id, async (tx) => {
      for (const session of [root, child, grandchild, sibling, imported]) await tx.sessions.add(session);
      await tx.turns.add(settled(root, { inputTokens: 1, outputTokens: 2, usd: 0.25 }));
      await tx.turns.add(settled(child, { inputTokens: 10, outputTokens: 20, cachedTokens: 7, usd: null }));
      await tx.turns.add(settled(sibling, { inputTokens: 100, outputTokens: 0, usd: 4 }));
      await tx.turns.add(settled(imported, { inputTokens: 1000, outputTokens: 0, usd: 8 }));
      await tx.turns.add(held);
    });
    const { turns } = store.read;
    const none = { tokens: 0, usd: 0, reservedTokens: 0, reservedUsd: 0, turns: 0 };
    const holding = { reservedTokens: 40, reservedUsd: 0.5 };
    assert.deepEqual(await turns.spentBelow(root.id, null), { tokens: 133, usd: 4.25, ...holding, turns: 4 });
    assert.deepEqual(await turns.spentBelow(child.id, null), { tokens: 30, usd: 0, ...holding, turns: 2 });
    assert.deepEqual(await turns.spentBelow(child.id, held.id), { ...none, tokens: 30, turns: 1 });
    assert.deepEqual(await turns.spentBelow(grandchild.id, held.id), none);
  });

  it("the largest turn is that of the profile in the tree, and none that was only estimated", async () => {
    const store = await fresh();
    const root = aSession();
    const reviewer = aChild(root, { profile: "reviewer" });
    const other = aSession();
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      await tx.sessions.add(reviewer);
      await tx.turns.add(settled(root, { inputTokens: 5, outputTokens: 5, usd: 0.1 }));
      await tx.turns.add(settled(root, { inputTokens: 2, outputTokens: 1, usd: 0.3 }));
      await tx.turns.add(settled(root, { inputTokens: 900, usd: 90, estimated: true }));
      await tx.turns.add(settled(reviewer, { inputTokens: 70, usd: 7 }));
    });
    await store.write(other.id, async (tx) => {
      await tx.sessions.add(other);
      await tx.turns.add(settled(other, { inputTokens: 5000, usd: 50 }));
    });
    assert.deepEqual(await store.read.turns.largest(root.id, "default"), { tokens: 10, usd: 0.3 });
    assert.deepEqual(await store.read.turns.largest(root.id, "reviewer"), { tokens: 70, usd: 7 });
    assert.deepEqual(await store.read.turns.largest(root.id, "tester"), { tokens: 0, usd: 0 });
  });

  it("a reservation is raised and freed by the turn's own writer", async () => {
    const store = await fresh();
    const root = aSession();
    const turn = aTurn(root.id, { reservedUsd: 0.1, fence: 3 });
    const read = async (): Promise<TurnRecord | null> => store.read.turns.byId(turn.id);
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      await tx.turns.add(turn);
      assert.equal(await tx.turns.patchRunning(turn.id, 2, { reservedUsd: 9 }), false);
      assert.equal(await tx.turns.patchRunning(turn.id, 3, { reservedUsd: 0.4 }), true);
    });
    assert.deepEqual([(await read())?.reservedUsd, (await read())?.reservedTokens], [0.4, null]);
    await store.write(root.id, (tx) =>
      tx.turns.patchRunning(turn.id, 3, { status: "completed", reservedUsd: null }),
    );
    assert.equal((await read())?.reservedUsd, null);
  });

  it("a parked session is not ready, and is found when its time has come or its tree is asked", async () => {
    const store = await fresh();
    const limited = aSession({ parked: { on: "limit", since: 1, until: 100, reason: "limit" } });
    const poor = aChild(limited, { parked: { on: "budget", since: 1, until: null, reason: "budget" } });
    const free = aChild(limited);
    await store.write(limited.id, async (tx) => {
      for (const session of [limited, poor, free]) {
        await tx.sessions.add(session);
        await tx.messages.add(aMessage(session.id));
      }
    });
    const { sessions } = store.read;
    const ids = (found: readonly SessionRecord[]): string[] => found.map((each) => each.id);
    assert.deepEqual(ids(await sessions.ready("local", 10)), [free.id]);
    assert.deepEqual(ids(await sessions.parkedUntil("local", 99)), []);
    assert.deepEqual(ids(await sessions.parkedUntil("local", 100)), [limited.id]);
    assert.deepEqual(ids(await sessions.parkedUntil("elsewhere", 100)), []);
    assert.deepEqual(new Set(ids(await sessions.parkedIn(limited.id))), new Set([limited.id, poor.id]));
    await store.write(limited.id, (tx) => tx.sessions.patch(poor.id, { parked: null }));
    assert.deepEqual(ids(await sessions.parkedIn(limited.id)), [limited.id]);
    assert.deepEqual(new Set(ids(await sessions.ready("local", 10))), new Set([free.id, poor.id]));
  });

  it("the daemon's own words are worked off before what was queued earlier", async () => {
    const store = await fresh();
    const root = aSession();
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      await tx.messages.add(aMessage(root.id, { kind: "prompt" }));
      await tx.messages.add(aMessage(root.id, { kind: "notice" }));
    });
    const queued = await store.read.messages.queued(root.id, 10);
    assert.deepEqual(
      queued.map((message) => message.kind),
      ["notice", "prompt"],
    );
  });
}

function settled(session: SessionRecord, usage: Partial<Usage>): ReturnType<typeof aTurn> {
  const nothing: Usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd: null };
  return aTurn(session.id, { status: "completed", settledAt: 1, usage: { ...nothing, ...usage } });
}
