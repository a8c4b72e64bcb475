import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome } from "../contract/index.ts";
import type { MessageRecord } from "../store/port/store.ts";
import { admit } from "./admit.ts";
import { detach } from "./cancel.ts";
import { type Family, openFamily } from "./testing/family.ts";
import { closeIfOver, closeRound } from "./round.ts";
import { newTrigger } from "./callback.ts";

const NOW = 10;

function end(family: Family, id: string, outcome: Outcome): Promise<void> {
  return family.change(id, (tx, session) =>
    closeRound(tx, session, { outcome, reason: null, by: null, now: NOW }),
  );
}

function ask(family: Family, id: string): Promise<MessageRecord> {
  return family.change(id, (tx, session) =>
    admit(tx, session, {
      now: NOW,
      kind: "prompt",
      senderKind: "person",
      senderId: "p",
      delivery: "followUp",
      body: "hi",
    }),
  );
}

async function workOff(family: Family, message: MessageRecord): Promise<void> {
  await family.write((tx) => tx.messages.move(message.id, ["queued"], { status: "landed", landedAt: NOW }));
}

for (const [outcome, held] of [
  ["completed", null],
  ["failed", "failed"],
  ["cancelled", "stopped"],
  ["interrupted", null],
] as const) {
  test(`a round that ${outcome} closes once, tells the parent once, and holds the inbox: ${held}`, async (t) => {
    const family = await openFamily(t);
    const child = await family.add(family.rootId);
    await end(family, child.id, outcome);
    await end(family, child.id, "failed");
    const row = await family.session(child.id);
    assert.deepEqual([row.roundOpen, row.outcome, row.held], [false, outcome, held]);
    const callbacks = await family.callbacks();
    assert.deepEqual(
      callbacks.map(({ metadata, status }) => [metadata["childSessionId"], metadata["outcome"], status]),
      [[child.id, outcome, "queued"]],
    );
    assert.equal((await family.session()).roundOpen, true, "the callback opened a round of the idle parent");
  });
}

test("every round calls back once", async (t) => {
  const family = await openFamily(t);
  const child = await family.add(family.rootId);
  await end(family, child.id, "completed");
  await workOff(family, await ask(family, child.id));
  await end(family, child.id, "completed");
  const callbacks = await family.callbacks();
  assert.deepEqual(
    callbacks.map((message) => message.callbackKey),
    [`${child.id}:1`, `${child.id}:2`],
  );
});

test("a parent has not completed while a child will call back, nor while that callback is unread", async (t) => {
  const family = await openFamily(t);
  await workOff(family, await ask(family, family.rootId));
  const child = await family.add(family.rootId);
  const isOpen = async (): Promise<boolean> => {
    await family.write((tx) => closeIfOver(tx, family.rootId, NOW));
    return (await family.session()).roundOpen;
  };
  assert.equal(await isOpen(), true, "the child is at work");
  await end(family, child.id, "completed");
  assert.equal(await isOpen(), true, "its callback waits");
  const [callback] = await family.callbacks();
  await workOff(family, callback!);
  assert.equal(await isOpen(), false);
});

test("a round that ends closes those above it that waited for nothing else", async (t) => {
  const family = await openFamily(t);
  await workOff(family, await ask(family, family.rootId));
  const child = await family.add(family.rootId);
  const below = await family.add(child.id, {
    callback: { ...child.callback, enabled: false },
  });
  await family.write((tx) => closeIfOver(tx, child.id, NOW));
  assert.equal(
    (await family.session(child.id)).outcome,
    "completed",
    "a child without callbacks is not awaited",
  );
  assert.equal((await family.session(below.id)).roundOpen, true);
  assert.equal((await family.callbacks()).length, 1);
});

test("a detached child neither keeps a round open nor calls back", async (t) => {
  const family = await openFamily(t);
  await workOff(family, await ask(family, family.rootId));
  const child = await family.add(family.rootId);
  await family.change(child.id, async (tx, session) => {
    await detach(tx, session, NOW);
    await closeIfOver(tx, family.rootId, NOW);
  });
  assert.equal((await family.session()).outcome, "completed");
  await end(family, child.id, "completed");
  assert.deepEqual(await family.callbacks(), []);
});

for (const what of ["a running turn", "a queued message", "background work", "an open question"]) {
  test(`${what} keeps a round open`, async (t) => {
    const family = await openFamily(t);
    const child = await family.add(family.rootId);
    if (what === "a running turn") await family.startTurn(child.id);
    if (what === "a queued message") await ask(family, child.id);
    if (what === "background work")
      await family.write((tx) => tx.sessions.patch(child.id, { backgroundUntil: NOW + 1 }));
    if (what === "an open question") {
      await family.write((tx) =>
        tx.triggers.add({
          ...newTrigger({
            sessionId: child.id,
            toId: family.rootId,
            type: "ask_user_question",
            payload: {},
            round: 1,
            now: NOW,
          }),
          id: "q",
        }),
      );
    }
    await family.write((tx) => closeIfOver(tx, child.id, NOW));
    assert.equal((await family.session(child.id)).roundOpen, true);
  });
}

test("after an interruption, queued messages open a new round with its own callback", async (t) => {
  const family = await openFamily(t);
  const child = await family.add(family.rootId);
  const waiting = await ask(family, child.id);
  await end(family, child.id, "interrupted");
  const { round, roundOpen } = await family.session(child.id);
  assert.deepEqual([round, roundOpen], [2, true]);
  await workOff(family, waiting);
  await end(family, child.id, "completed");
  assert.deepEqual(
    (await family.callbacks()).map((message) => message.metadata["outcome"]),
    ["interrupted", "completed"],
  );
});

test("after a failure, queued messages stay in the inbox and open no round", async (t) => {
  const family = await openFamily(t);
  const child = await family.add(family.rootId);
  await ask(family, child.id);
  await end(family, child.id, "failed");
  assert.deepEqual((await family.session(child.id)).roundOpen, false);
  assert.equal(
    await family.store.read.sessions.ready("local", 10).then((all) => all.some(({ id }) => id === child.id)),
    false,
  );
});
