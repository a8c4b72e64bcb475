import assert from "node:assert/strict";
import { test } from "node:test";
import type { Driver, OpenRequest } from "../../drivers/port.ts";
import { Refusal } from "../../contract/index.ts";
import { aroundWrites } from "../../store/testing/around-writes.ts";
import { beats, fillDisk, holdAt, movableClock, startFake } from "../testing/fake-daemon.ts";

test("a turn whose agent is gone and whose outcome is not stored yet is not taken for lost", async (t) => {
  const clock = movableClock(t);
  const { client, store, quiet } = await startFake(t);
  const refused = Promise.withResolvers<void>();
  let isFull = true;
  // Refuses only the write of the outcome: a recovery, too, is a write.
  aroundWrites(store, (rootId, work, write) =>
    write(async (tx) => {
      const before = await tx.turns.running(rootId);
      const result = await work(tx);
      if (!isFull || before === null || (await tx.turns.running(rootId)) !== null) return result;
      refused.resolve();
      throw new Refusal("disk_full", "The disk is full; nothing was changed.");
    }),
  );
  const { session } = await client.create({ prompt: "sim> crash" });
  await refused.promise;
  // Advances the clock beyond the age at which the heartbeat recovers a turn without a slot.
  clock.add(60_000);
  await beats(store, 2);
  isFull = false;
  assert.equal((await quiet(session.id)).outcome, "failed");
  const turn = await store.read.turns.last(session.id);
  assert.deepEqual([turn?.status, turn?.attempt], ["failed", 1]);
});

test("a turn's entries are in its transcript once, also when the disk was full as it settled", async (t) => {
  const end = holdAt("end");
  let isFull = false;
  const over = Promise.withResolvers<void>();
  const { client, store, quiet } = await startFake(t, {
    gate: (point) => end.gate(point),
    reached: (moment) => moment === "outcome.received" && over.resolve(),
  });
  const disk = fillDisk(store, () => isFull);
  const { session } = await client.create({ prompt: "sim> say once" });
  await end.reached;
  isFull = true;
  await disk.refused;
  end.open();
  await over.promise;
  // The first may be a write of entries that had begun before; the second is the settle.
  await disk.refusedAgain(2);
  isFull = false;
  await quiet(session.id);
  const entries = await store.read.entries.page(session.id, { limit: 100 });
  const said = entries.filter((entry) => entry.author === "agent").map((entry) => entry.body.text);
  assert.deepEqual(said, ["once"]);
});

test("work outside a prompt gets its own turn, also when the disk is full as it begins", async (t) => {
  const requests: OpenRequest[] = [];
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    open(request) {
      requests.push(request);
      return driver.open(request);
    },
  });
  let isFull = false;
  const { client, store, quiet, when } = await startFake(t, { wrap });
  const disk = fillDisk(store, () => isFull);
  const { session } = await client.create({ prompt: "sim> say asked" });
  await quiet(session.id);
  isFull = true;
  requests[0]!.onUpdate({ kind: "text", text: "unasked" });
  await disk.refused;
  requests[0]!.onUpdate({ kind: "text", text: "and more" });
  isFull = false;
  await when(async () => (await store.read.turns.last(session.id))?.kind === "autonomous");
  await quiet(session.id);
  const turn = await store.read.turns.last(session.id);
  assert.deepEqual([turn?.status, turn?.lastAssistantMessage], ["completed", "and more"]);
  const entries = await store.read.entries.page(session.id, { limit: 100 });
  const said = entries.filter((entry) => entry.turnId === turn?.id).map((entry) => entry.body.text);
  assert.deepEqual(said, ["unasked", "and more"]);
  // The process keeps running, and the next prompt gets its own turn.
  await client.prompt({ id: session.id, prompt: "sim> say again" });
  await when(async () => (await store.read.turns.last(session.id))?.lastAssistantMessage === "again");
});

test("stopped work outside a prompt is cancelled, and later work can be stopped too", async (t) => {
  const requests: OpenRequest[] = [];
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    open(request) {
      requests.push(request);
      return driver.open(request);
    },
  });
  const { client, store, quiet, when } = await startFake(t, { wrap });
  const { session } = await client.create({ prompt: "sim> say asked" });
  await quiet(session.id);
  requests[0]!.onUpdate({ kind: "text", text: "unasked" });
  await when(() => store.read.turns.running(session.id));
  await client.cancel({ id: session.id, turnOnly: true });
  assert.equal((await quiet(session.id)).outcome, "cancelled");
  await client.prompt({ id: session.id, prompt: "sim> hang" });
  await when(() => store.read.turns.running(session.id));
  await client.cancel({ id: session.id, turnOnly: true });
  const turn = await store.read.turns.last(session.id);
  assert.deepEqual([turn?.index, turn?.status], [2, "cancelled"]);
});
