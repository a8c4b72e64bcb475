import assert from "node:assert/strict";
import { test } from "node:test";
import { cutTurn, openEngine, settledTurn } from "./testing/engine.ts";
import { beats, holdAt, startFake } from "./testing/fake-daemon.ts";
import { endBackground } from "./background.ts";
import { Heartbeat } from "./heartbeat.ts";

test("a node whose lease cannot be renewed in time ends its agents though the store does not answer", async (t) => {
  const real = performance.now.bind(performance);
  let aheadMs = 0;
  t.mock.method(performance, "now", () => real() + aheadMs);
  const held = holdAt("begin");
  const { family, deps, runner, opened } = await openEngine(t, { gate: (point) => held.gate(point) });
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<boolean>();
  const nodes = {
    ...family.store.nodes,
    renew(): Promise<boolean> {
      asked.resolve();
      return answered.promise;
    },
  };
  Object.assign(family.store, { kind: "postgres", nodes });
  const { id, turn } = await cutTurn(family);
  await runner.run();
  await held.reached;
  const heartbeat = new Heartbeat(deps, runner);
  await heartbeat.run();
  t.after(() => heartbeat.stop());
  const [slot] = runner.runtime.slots.values();
  aheadMs = 6_000;
  await asked.promise;
  aheadMs = 27_000;
  await slot!.agent!.exited;
  assert.equal((await family.store.read.turns.byId(turn.id))?.status, "running", "its turn stays open");
  held.open();
  answered.resolve(true);
  const settled = await settledTurn(family, turn);
  assert.deepEqual([settled.status, settled.attempt], ["completed", 3]);
  assert.equal(opened.filter((each) => each === id).length, 2);
});

test("background work is not ended by a check that began before a newer turn", async (t) => {
  const { family, deps } = await openEngine(t);
  const { id, turn } = await cutTurn(family, { backgroundUntil: 100 });
  const before = await family.session(id);
  await endBackground(deps, before);
  assert.equal((await family.session(id)).backgroundUntil, 100, "a turn runs");
  await family.settleTurn(turn);
  await family.write((tx) => tx.sessions.patch(id, { backgroundUntil: 200 }));
  await endBackground(deps, before);
  assert.equal((await family.session(id)).backgroundUntil, 200, "its last turn set another time");
  await endBackground(deps, await family.session(id));
  const { backgroundUntil, outcome } = await family.session(id);
  assert.deepEqual([backgroundUntil, outcome], [null, "completed"]);
});

test("sessions that work in the background are found without reading the others", async (t) => {
  const { family } = await openEngine(t);
  const busy = await family.add(family.rootId, { backgroundUntil: 5 });
  await family.add(family.rootId);
  await family.add(family.rootId, { backgroundUntil: 5, endedAt: 6 });
  await family.add(family.rootId, { backgroundUntil: 5, node: "elsewhere" });
  const found = await family.store.read.sessions.inBackground("local");
  assert.deepEqual(
    found.map(({ id }) => id),
    [busy.id],
  );
});

test("a daemon whose event loop stalled has not slept: nothing is said of sleep, and no deadline moves", async (t) => {
  const { client, store } = await startFake(t);
  const { session } = await client.create({ prompt: "sim> sleep 600000" });
  await beats(store, 1);
  // Blocks the main thread for longer than the shortest sleep that moves deadlines.
  for (const until = performance.now() + 12_000; performance.now() < until;);
  await beats(store, 2);
  const events = await store.feed.ofTree(session.id, 0, 1_000);
  assert.ok(events.length > 0);
  assert.deepEqual(
    events.filter(({ type, text }) => type === "notice" && text?.startsWith("slept ")),
    [],
  );
});
