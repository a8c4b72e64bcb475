import assert from "node:assert/strict";
import { test } from "node:test";
import type { FakePoint } from "../drivers/fake/driver.ts";
import type { Driver, OpenRequest } from "../drivers/port.ts";
import { admit } from "../kernel/admit.ts";
import { IDLE } from "../kernel/testing/family.ts";
import { openEngine } from "./testing/engine.ts";
import { fillDisk, startFake, withHandles } from "./testing/fake-daemon.ts";

test("a session that cannot be started does not keep those behind it from starting", async (t) => {
  const { family, runner } = await openEngine(t);
  const ids: string[] = [];
  for (const at of [1, 2]) {
    const { id } = await family.add(family.rootId, IDLE);
    ids.push(id);
    const sender = { senderKind: "person", senderId: "p" } as const;
    await family.change(id, (tx, row) =>
      admit(tx, row, { now: at, kind: "prompt", delivery: "followUp", body: "sim> say hi", ...sender }),
    );
  }
  // The first session cannot be claimed: the first message of its inbox has neither text nor data to render.
  const [poisoned] = await family.inbox(ids[0]);
  await family.write((tx) =>
    tx.messages.move(poisoned!.id, ["queued"], {
      kind: "callback",
      body: null,
      data: { outcome: "cancelled" },
    }),
  );
  const settled = Promise.withResolvers<void>();
  const off = family.store.onCommit(() => {
    void family.session(ids[1]).then((row) => row.outcome === "completed" && settled.resolve());
  });
  t.after(() => off());
  await runner.run();
  await settled.promise;
  assert.equal((await family.session(ids[0])).outcome, null);
});

test("work of an agent after it was stopped is recorded, and its inbox stays held", async (t) => {
  const requests: OpenRequest[] = [];
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    open(request) {
      requests.push(request);
      return driver.open(request);
    },
  });
  const begun = Promise.withResolvers<void>();
  const gate = (point: FakePoint): void => {
    if (point.at === "begin") begun.resolve();
  };
  const { client, store, quiet, when } = await startFake(t, { wrap, gate });
  const { session } = await client.create({ prompt: "sim> sleep 600000" });
  await begun.promise;
  await client.cancel({ id: session.id, turnOnly: true });
  await quiet(session.id);
  requests[0]!.onUpdate({ kind: "text", text: "one word more" });
  const turn = await when(async () => {
    const last = await store.read.turns.last(session.id);
    return last?.kind === "autonomous" && last.status !== "running" && last;
  });
  assert.equal(turn.lastAssistantMessage, "one word more");
  const { held, round, roundOpen } = (await store.read.sessions.byId(session.id))!;
  assert.deepEqual([held, round, roundOpen], ["stopped", 1, false]);
});

test("a lease that could not be given back on a full disk is given back when there is room", async (t) => {
  let isFull = false;
  const wrap = withHandles((handle) => ({
    stop(graceMs) {
      isFull = true;
      return handle.stop(graceMs);
    },
  }));
  const begun = Promise.withResolvers<void>();
  const gate = (point: FakePoint): void => {
    if (point.at === "begin") begun.resolve();
  };
  const { client, store, when } = await startFake(t, { wrap, gate });
  const disk = fillDisk(store, () => isFull);
  const { session } = await client.create({ prompt: "sim> sleep 600000" });
  await begun.promise;
  const cancelling = client.cancel({ id: session.id });
  await disk.refused;
  isFull = false;
  await cancelling;
  assert.ok(await when(async () => (await store.read.leases.bySession(session.id)) === null));
});
