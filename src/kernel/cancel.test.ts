import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf } from "../system/id.ts";
import { admit } from "./admit.ts";
import { cancelSubtree, type Cancelled } from "./cancel.ts";
import { type Family, openFamily } from "./testing/family.ts";
import { closeIfOver, closeRound } from "./round.ts";
import { newTrigger } from "./callback.ts";

const NOW = 10;
const ORDER = { by: "the user", reason: "wrong branch", now: NOW };

function cancel(family: Family, id: string): Promise<Cancelled> {
  return family.change(id, (tx, session) => cancelSubtree(tx, session, ORDER));
}

async function threeGenerations(family: Family) {
  const child = await family.add(family.rootId, { name: "child" });
  const below = await family.add(child.id, { name: "below" });
  const beside = await family.add(child.id, { name: "beside", roundOpen: false, outcome: "completed" });
  return { child, below, beside };
}

test("a cancel ends the session and everyone below it in one transaction", async (t) => {
  const family = await openFamily(t);
  const { child, below, beside } = await threeGenerations(family);
  const cancelled = await cancel(family, child.id);
  assert.deepEqual(
    cancelled.marked.map(({ id }) => id).toSorted(),
    [child.id, below.id, beside.id].toSorted(),
  );
  assert.deepEqual([cancelled.wereOpen, cancelled.wasOpen], [2, true]);
  for (const { id } of [child, below, beside]) {
    const { endedAt, endReason, endBy, endNote, roundOpen } = await family.session(id);
    assert.deepEqual(
      [endedAt, endReason, endBy, endNote, roundOpen],
      [NOW, "cancelled", "the user", "wrong branch", false],
    );
  }
  assert.equal((await family.session(beside.id)).outcome, "completed", "an outcome that came first stands");
});

test("the callback of the session named is sent, those below it are void", async (t) => {
  const family = await openFamily(t);
  const { child, below } = await threeGenerations(family);
  await cancel(family, child.id);
  const [callback, ...more] = await family.callbacks();
  assert.deepEqual([callback?.metadata["childSessionId"], callback?.status, more], [child.id, "queued", []]);
  assert.equal(callback?.data?.["stoppedBelow"], 1);
  const inside = await family.callbacks(child.id);
  assert.deepEqual(
    inside.map(({ metadata, status }) => [metadata["childSessionId"], status]),
    [[below.id, "void"]],
  );
});

test("queued messages are void, open questions withdrawn, and tokens dead", async (t) => {
  const family = await openFamily(t);
  const { child, below } = await threeGenerations(family);
  const hash = hashOf("token");
  await family.change(below.id, async (tx, session) => {
    const sender = { senderKind: "person", senderId: "p" } as const;
    await admit(tx, session, { now: NOW, kind: "prompt", delivery: "followUp", body: "hi", ...sender });
    await tx.triggers.add({
      ...newTrigger({
        sessionId: below.id,
        toId: child.id,
        type: "ask_user_question",
        payload: {},
        round: 1,
        now: 1,
      }),
      id: "q",
    });
    await tx.tokens.add({
      hash,
      kind: "session",
      sessionId: below.id,
      rootId: family.rootId,
      fence: 1,
      name: "below",
      createdAt: 1,
      can: null,
      scope: null,
      ceiling: null,
      roots: null,
      expiresAt: null,
      revokedAt: null,
    });
  });
  await cancel(family, child.id);
  const { read } = family.store;
  assert.equal((await family.inbox(below.id))[0]?.status, "void");
  assert.equal((await read.triggers.byId("q"))?.status, "withdrawn");
  assert.equal((await read.tokens.byHash(hash))?.revokedAt, NOW);
});

test("a child with onParentEnd detach continues with all its descendants", async (t) => {
  const family = await openFamily(t);
  const { child } = await threeGenerations(family);
  const survivor = await family.add(child.id, { onParentEnd: "detach" });
  const under = await family.add(survivor.id);
  await cancel(family, child.id);
  const row = await family.session(survivor.id);
  assert.deepEqual([row.endedAt, row.detachedAt, row.parentId, row.roundOpen], [null, NOW, child.id, true]);
  assert.equal((await family.session(under.id)).endedAt, null);
  await cancel(family, family.rootId);
  assert.equal((await family.session(survivor.id)).endedAt, null, "it has left the family");
});

test("sessions we do not run are reported and left as they are", async (t) => {
  const family = await openFamily(t);
  const attached = await family.add(family.rootId, { origin: "attached" });
  const cancelled = await cancel(family, family.rootId);
  assert.deepEqual(
    cancelled.notOurs.map(({ id }) => id),
    [attached.id],
  );
  assert.equal((await family.session(attached.id)).endedAt, null);
});

test("a cancel that comes twice changes nothing the second time", async (t) => {
  const family = await openFamily(t);
  const { child } = await threeGenerations(family);
  await cancel(family, child.id);
  const before = await family.events();
  const again = await cancel(family, child.id);
  assert.deepEqual([again.marked, again.wasOpen], [[], false]);
  assert.deepEqual(await family.events(), before);
});

test("nothing that comes later undoes a tombstone", async (t) => {
  const family = await openFamily(t);
  const { child } = await threeGenerations(family);
  await cancel(family, child.id);
  await family.change(child.id, async (tx, session) => {
    await closeIfOver(tx, child.id, NOW + 1);
    await closeRound(tx, session, { outcome: "completed", reason: null, by: null, now: NOW + 1 });
  });
  const { outcome, endedAt } = await family.session(child.id);
  assert.deepEqual([outcome, endedAt], ["cancelled", NOW]);
  assert.equal((await family.callbacks()).length, 1);
});

test("a parent whose child was cancelled completes only after it has read that", async (t) => {
  const family = await openFamily(t);
  await family.write((tx) => tx.sessions.patch(family.rootId, { round: 1, roundOpen: true }));
  const { child } = await threeGenerations(family);
  await cancel(family, child.id);
  assert.equal((await family.session()).roundOpen, true);
});
