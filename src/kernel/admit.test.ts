import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageRecord } from "../store/port/store.ts";
import { type Admission, admit, giveBack, land, makeVoid } from "./admit.ts";
import { type Family, openFamily } from "./testing/family.ts";

const NOW = 10;
const PERSON = { senderKind: "person", senderId: "p" } as const;

function send(family: Family, id: string, fields: Partial<Admission> = {}): Promise<MessageRecord> {
  const admission: Admission = { kind: "prompt", delivery: "followUp", body: "hi", ...PERSON, ...fields };
  return family.change(id, (tx, session) => admit(tx, session, { now: NOW, ...admission }));
}

async function take(family: Family, message: MessageRecord): Promise<MessageRecord> {
  const patch = { status: "taken", carrier: "prompt", turnId: "t", takenAt: NOW } as const;
  await family.write((tx) => tx.messages.move(message.id, ["queued"], patch));
  return (await family.store.read.messages.byId(message.id))!;
}

test("the first message to an idle session opens a round, the second joins it", async (t) => {
  const family = await openFamily(t);
  await send(family, family.rootId);
  await send(family, family.rootId);
  const { round, roundOpen, roundOpenedAt } = await family.session();
  assert.deepEqual([round, roundOpen, roundOpenedAt], [1, true, NOW]);
  const opened = (await family.events()).filter((type) => type === "round.opened");
  assert.equal(opened.length, 1);
});

test("any new message releases an inbox held after a failure", async (t) => {
  const family = await openFamily(t);
  const child = await family.add(family.rootId, { roundOpen: false, held: "failed" });
  await send(family, child.id, { senderKind: "session", senderId: "somebody" });
  const { held, roundOpen, round } = await family.session(child.id);
  assert.deepEqual([held, roundOpen, round], [null, true, 2]);
});

for (const [who, sender, isReleased] of [
  ["a person", PERSON, true],
  ["the parent", { senderKind: "session", senderId: "parent" }, true],
  ["a session below", { senderKind: "session", senderId: "below" }, false],
  ["the daemon", { senderKind: "daemon", senderId: null }, false],
  ["an outside system", { senderKind: "outside", senderId: "o" }, false],
] as const) {
  test(`${who} ${isReleased ? "releases" : "does not release"} an inbox held after a stop`, async (t) => {
    const family = await openFamily(t);
    const child = await family.add(family.rootId, { roundOpen: false, held: "stopped" });
    const senderId = sender.senderId === "parent" ? family.rootId : sender.senderId;
    await send(family, child.id, { ...sender, senderId });
    const { held, roundOpen } = await family.session(child.id);
    assert.deepEqual([held, roundOpen], isReleased ? [null, true] : ["stopped", false]);
    assert.equal((await family.inbox(child.id))[0]?.status, "queued", "it is kept either way");
  });
}

test("a message that is given back keeps its position in the inbox", async (t) => {
  const family = await openFamily(t);
  const sent = [await send(family, family.rootId), await send(family, family.rootId)];
  const taken = await take(family, sent[0]!);
  assert.equal(await family.write((tx) => giveBack(tx, taken, { repeated: true, now: NOW })), true);
  const queued = await family.store.read.messages.queued(family.rootId, 10);
  assert.deepEqual(
    queued.map(({ id, repeated, turnId, carrier }) => [id, repeated, turnId, carrier]),
    [
      [sent[0]!.id, true, null, null],
      [sent[1]!.id, false, null, null],
    ],
  );
});

test("a message that may have been seen stays marked, however it is given back later", async (t) => {
  const family = await openFamily(t);
  const message = await send(family, family.rootId);
  for (const repeated of [true, false]) {
    const taken = await take(family, message);
    await family.write((tx) => giveBack(tx, taken, { repeated, now: NOW }));
  }
  assert.equal((await family.inbox())[0]?.repeated, true);
});

test("a message that is given back to a session that has ended is void", async (t) => {
  const family = await openFamily(t);
  const taken = await take(family, await send(family, family.rootId));
  await family.write((tx) => tx.sessions.patch(family.rootId, { endedAt: NOW, endReason: "cancelled" }));
  assert.equal(await family.write((tx) => giveBack(tx, taken, { repeated: false, now: NOW })), false);
  assert.equal((await family.inbox())[0]?.status, "void");
});

test("only a taken message lands, once; a landed message is neither given back nor void", async (t) => {
  const family = await openFamily(t);
  const message = await send(family, family.rootId);
  assert.equal(await family.write((tx) => land(tx, message, NOW)), false);
  const taken = await take(family, message);
  const did = await family.write(async (tx) => [
    await land(tx, taken, NOW),
    await land(tx, taken, NOW),
    await giveBack(tx, taken, { repeated: false, now: NOW }),
    await makeVoid(tx, taken, { reason: "late", now: NOW }),
  ]);
  assert.deepEqual(did, [true, false, false, false]);
  assert.deepEqual(
    (await family.events()).filter((type) => type.startsWith("message.")),
    ["message.admitted", "message.landed"],
  );
});
