import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as immediate } from "node:timers/promises";
import { holdAt, startFake } from "./testing/fake-daemon.ts";

for (const turnOnly of [true, false]) {
  test(`nothing is sent to an agent whose ${turnOnly ? "turn" : "session"} was stopped while it started`, async (t) => {
    const opening = holdAt("open");
    const prompts: string[] = [];
    const { client, store, quiet, when } = await startFake(t, {
      gate(point) {
        if (point.at === "begin") prompts.push(point.text ?? "");
        return opening.gate(point);
      },
    });
    const { session } = await client.create({ prompt: "sim> say hello" });
    await opening.reached;
    const cancelling = client.cancel({ id: session.id, turnOnly, reason: "wrong" });
    await when(async () => {
      const row = await store.read.sessions.byId(session.id);
      return row?.endedAt !== null || (await store.read.turns.last(session.id))?.stopBy !== null;
    });
    opening.open();
    await cancelling;
    assert.equal((await quiet(session.id)).outcome, "cancelled");
    const turn = await when(async () => {
      const last = await store.read.turns.last(session.id);
      return last?.status !== "running" && last;
    });
    assert.deepEqual([turn.status, prompts], ["cancelled", []]);
    const [message] = await store.read.messages.ofSession(session.id, ["queued", "void", "taken", "landed"]);
    assert.equal(message?.status, "void", "what was stopped does not begin with the next message");
  });
}

test("a stop that comes too late for its turn does not stop the one after it", async (t) => {
  const first = holdAt("end", (point) => point.text?.includes("first") === true);
  const second = holdAt("begin", (point) => point.text?.includes("second") === true);
  const { client, store, quiet } = await startFake(t, {
    async gate(point) {
      await first.gate(point);
      await second.gate(point);
    },
  });
  const { session } = await client.create({ prompt: "sim> say first" });
  await first.reached;
  await client.prompt({ id: session.id, prompt: "sim> say second" });
  // The read of the running turn is delayed, as if the database were slow.
  const { running } = store.read.turns;
  const heard = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  Object.assign(store.read.turns, {
    async running(id: string) {
      const turn = await running(id);
      if (turn?.stopBy != null && turn.index === 0) {
        asked.resolve();
        await heard.promise;
      }
      return turn;
    },
  });
  const cancelling = client.cancel({ id: session.id, turnOnly: true });
  await asked.promise;
  first.open();
  await second.reached;
  heard.resolve();
  await cancelling;
  // From the delayed read to the late stop there are only microtasks.
  await immediate();
  second.open();
  await quiet(session.id);
  const turns = await store.read.turns.ofSession(session.id, { limit: 10 });
  assert.deepEqual(
    turns.map((turn) => turn.status),
    ["completed", "completed"],
  );
});

test("over the limit of processes the one idle longest makes way, and only as many as are wanted", async (t) => {
  const held = holdAt("begin", (point) => point.text?.includes("last") === true);
  const { client, store, quiet } = await startFake(t, {
    config: { limits: { processesMax: 3 } },
    gate: (point) => held.gate(point),
  });
  const ids: string[] = [];
  for (const name of ["a", "b", "c"]) {
    const { session } = await client.create({ name, prompt: `sim> say ${name}` });
    await quiet(session.id);
    ids.push(session.id);
  }
  await client.create({ name: "d", prompt: "sim> say last" });
  await held.reached;
  const alive = await Promise.all(ids.map((id) => store.read.leases.bySession(id)));
  assert.deepEqual(
    alive.map((lease) => lease !== null),
    [false, true, true],
  );
  held.open();
});
