import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallbackConfig } from "../contract/index.ts";
import type { SessionRecord } from "../store/port/store.ts";
import { callBack, callbackKey, endKey } from "./callback.ts";
import { type Family, openFamily } from "./testing/family.ts";
import { closeRound, type RoundEnd } from "./round.ts";

const END: RoundEnd = { outcome: "completed", reason: null, by: null, now: 10 };

async function childWith(family: Family, callback: Partial<CallbackConfig>): Promise<SessionRecord> {
  const { callback: base } = await family.session();
  return family.add(family.rootId, { callback: { ...base, ...callback } });
}

test("a round that is reported as ended several times has one callback", async (t) => {
  const family = await openFamily(t);
  const child = await childWith(family, {});
  for (let at = 0; at < 3; at++) await family.change(child.id, (tx, row) => callBack(tx, row, { end: END }));
  assert.equal((await family.callbacks()).length, 1);
});

test("a child whose callbacks are off sends none", async (t) => {
  const family = await openFamily(t);
  const child = await childWith(family, { enabled: false });
  await family.change(child.id, (tx, row) => closeRound(tx, row, END));
  assert.deepEqual(await family.inbox(), []);
  assert.equal((await family.session()).roundOpen, false);
});

test("a parent that has ended keeps the callback, void, with the reason", async (t) => {
  const family = await openFamily(t);
  const child = await childWith(family, {});
  await family.write((tx) => tx.sessions.patch(family.rootId, { endedAt: 5, endReason: "removed" }));
  await family.change(child.id, (tx, row) => closeRound(tx, row, END));
  const [message] = await family.callbacks();
  assert.deepEqual([message?.status, message?.voidReason], ["void", "its parent has ended"]);
  assert.equal((await family.session()).roundOpen, false);
});

test("a callback reports only what was observed in its round", async (t) => {
  const family = await openFamily(t);
  const child = await childWith(family, {});
  const old = await family.startTurn(child.id, { round: 0, lastAssistantMessage: "old" });
  await family.settleTurn(old);
  const turn = await family.startTurn(child.id, { lastAssistantMessage: "new" });
  await family.settleTurn(turn);
  await family.change(child.id, (tx, row) => closeRound(tx, row, END));
  const [message] = await family.callbacks();
  assert.deepEqual(
    [message?.data?.["lastMessage"], message?.data?.["turnId"], message?.metadata["childTurnId"]],
    ["new", turn.id, turn.id],
  );
});

test("with one callback per turn, each turn calls back and the round's end does not", async (t) => {
  const family = await openFamily(t);
  const child = await childWith(family, { when: "turn" });
  for (let at = 0; at < 2; at++) {
    const turn = await family.startTurn(child.id);
    await family.settleTurn(turn);
    await family.change(child.id, (tx, row) => callBack(tx, row, { end: END, turn }));
  }
  await family.change(child.id, (tx, row) => closeRound(tx, row, END));
  assert.deepEqual(
    (await family.callbacks()).map((message) => message.callbackKey),
    [`${child.id}:1:0`, `${child.id}:1:1`],
  );
});

test("with one callback per turn, a cancel reports the running turn, or the round if none runs", async (t) => {
  const family = await openFamily(t);
  for (const isRunning of [true, false]) {
    const child = await childWith(family, { when: "turn" });
    const turn = isRunning ? await family.startTurn(child.id) : null;
    const key = await family.change(child.id, async (tx, row) => {
      row.endedAt = 10;
      await tx.sessions.patch(row.id, { endedAt: 10 });
      await closeRound(tx, row, { ...END, outcome: "cancelled" });
      return endKey(tx, row);
    });
    assert.equal(key, callbackKey({ ...child, round: 1 }, turn));
    const callbacks = (await family.callbacks()).filter((message) => message.callbackKey === key);
    assert.equal(callbacks.length, 1);
  }
});

test("a callback's trigger row belongs to the child and needs no answer", async (t) => {
  const family = await openFamily(t);
  const child = await childWith(family, {});
  await family.change(child.id, (tx, row) => closeRound(tx, row, { ...END, outcome: "failed" }));
  const [trigger] = await family.store.read.triggers.ofSession(child.id);
  assert.deepEqual(
    [trigger?.type, trigger?.toId, trigger?.payload["exitReason"]],
    ["session_complete", family.rootId, "error"],
  );
  assert.equal(await family.store.read.triggers.openCount(child.id), 0);
});
