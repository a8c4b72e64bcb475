import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { WorkQueue } from "./work-queue.ts";

function open(t: TestContext) {
  const ending = new AbortController();
  t.after(() => ending.abort());
  const idle = Promise.withResolvers<void>();
  const onIdle = (kind: string): void => void (kind === "read" && idle.resolve());
  const queue = new WorkQueue({ limits: { read: 2, scan: 1 }, signal: ending.signal, onIdle });
  const ran: string[] = [];
  const run = (name: string) => async (): Promise<void> => void ran.push(name);
  return { queue, ran, run, ending, idle: idle.promise };
}

describe("a work queue", () => {
  it("takes the highest rank of those that are due, and the others in their time", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout", "Date"] });
    const { queue, ran, run, idle } = open(t);
    void queue.add({ kind: "read", key: "late", run: run("late"), rank: 9, dueAt: Date.now() + 20 });
    void queue.add({ kind: "read", key: "low", run: run("low"), rank: 1 });
    void queue.add({ kind: "read", key: "high", run: run("high"), rank: 2 });
    t.mock.timers.tick(1);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(ran, ["high", "low"]);
    t.mock.timers.tick(19);
    await idle;
    assert.deepEqual(ran, ["high", "low", "late"]);
  });

  it("runs an item once that is added twice, when the earlier is due, and again if it is added while it runs", async (t) => {
    const { queue, ran, run } = open(t);
    const again = Promise.withResolvers<void>();
    void queue.add({ kind: "scan", key: "all", run: run("never"), dueAt: Date.now() + 3_600_000 });
    await queue.add({
      kind: "scan",
      key: "all",
      run: async () => {
        ran.push("first");
        const next = queue.add({ kind: "scan", key: "all", run: run("second") });
        void next.then(again.resolve);
      },
    });
    await again.promise;
    assert.deepEqual(ran, ["first", "second"]);
  });

  it("runs as many of a kind at once as it may, and no kind waits for another", async (t) => {
    const { queue, ran, run } = open(t);
    const held = Promise.withResolvers<void>();
    const hold = (name: string) => async (): Promise<void> => {
      ran.push(name);
      await held.promise;
    };
    for (const key of ["a", "b", "c"]) void queue.add({ kind: "read", key, run: hold(key) });
    await queue.add({ kind: "scan", key: "all", run: run("scan") });
    assert.deepEqual(ran, ["a", "b", "scan"]);
    held.resolve();
    await queue.finish("read");
    assert.deepEqual([ran.at(-1), queue.isIdle("read")], ["c", true]);
  });

  it("starts nothing once it is stopped", async (t) => {
    const { queue, ran, run, ending } = open(t);
    const first = queue.add({ kind: "scan", key: "a", run: async () => ending.abort() });
    void queue.add({ kind: "scan", key: "b", run: run("b") });
    await first;
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(ran, []);
  });
});
