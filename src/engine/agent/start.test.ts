import assert from "node:assert/strict";
import { test } from "node:test";
import type { Driver } from "../../drivers/port.ts";
import { breakWrites, fillDisk, movableClock, startFake } from "../testing/fake-daemon.ts";

test("a full disk while an agent starts costs time: the daemon lives and the turn completes", async (t) => {
  let isFull = false;
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    async open(request) {
      isFull = true;
      await request.admitProcess(() => ({ pid: 2 ** 30, startTime: 1, command: "none" }));
      return driver.open(request);
    },
  });
  const { client, store, quiet } = await startFake(t, { wrap });
  const disk = fillDisk(store, () => isFull);
  const unhandled: unknown[] = [];
  const note = (reason: unknown): number => unhandled.push(reason);
  process.on("unhandledRejection", note);
  t.after(() => process.off("unhandledRejection", note));
  const { session } = await client.create({ prompt: "sim> say done" });
  await disk.refused;
  isFull = false;
  const { outcome } = await quiet(session.id);
  assert.deepEqual([outcome, unhandled], ["completed", []]);
});

test("an agent whose start cannot be written is stopped, and its turn is taken up again", async (t) => {
  const clock = movableClock(t);
  let starts = 0;
  let bug: Error | null = null;
  const stopped = Promise.withResolvers<void>();
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    async open(request) {
      const result = await driver.open(request);
      starts += 1;
      if (starts > 1 || !result.ok) return result;
      void result.handle.exited.then(() => stopped.resolve());
      bug = new Error("a bug");
      return result;
    },
  });
  const { client, store, quiet } = await startFake(t, { wrap });
  breakWrites(store, () => {
    const error = bug;
    bug = null;
    return error;
  });
  const { session } = await client.create({ prompt: "sim> say done" });
  await stopped.promise;
  clock.add(60_000);
  assert.equal((await quiet(session.id)).outcome, "completed");
  assert.equal(starts, 2);
});
