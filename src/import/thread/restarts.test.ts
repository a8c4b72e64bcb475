import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CurrentTasks, type ImportTask, newTaskMemory, tasksIn } from "./current-tasks.ts";
import { Restarts, whySetAside } from "./restarts.ts";

const task = (key: string | null, stamp: string | null = "s1"): ImportTask => ({
  format: "codex",
  path: "/w/a.jsonl",
  key,
  stamp: key === null ? null : stamp,
});
const death = (...tasks: ImportTask[]) => ({ tasks, error: "out of memory", livedMs: 1000 });

describe("after the import thread has died", () => {
  it("each death makes the pause longer, up to five minutes; a long life makes it short again", () => {
    const restarts = new Restarts();
    const pauses = Array.from({ length: 11 }, () => restarts.died(death()) / 1000);
    assert.deepEqual(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    assert.equal(restarts.died({ ...death(), livedMs: 3_600_000 }), 1000);
  });

  it("nothing is set aside while it is not certain what it died on: then it does one thing at a time", () => {
    const restarts = new Restarts();
    restarts.died(death(task("a"), task("b")));
    assert.deepEqual([restarts.setAside, restarts.isCareful], [[], true]);
    restarts.died(death(task("b")));
    assert.deepEqual(
      restarts.setAside.map(({ key }) => key),
      ["b"],
    );
  });

  it("a session is tried again when its file changes; after a second death, and a folder, when it is asked for", () => {
    const restarts = new Restarts();
    restarts.died(death(task("a")));
    assert.match(whySetAside(restarts.setAside, task("a")) ?? "", /out of memory/);
    assert.equal(whySetAside(restarts.setAside, task("a", "s2")), null);
    restarts.died(death(task("a", "s2")));
    restarts.died(death(task(null)));
    assert.notEqual(whySetAside(restarts.setAside, task("a", "s3")), null);
    assert.notEqual(whySetAside(restarts.setAside, task(null)), null);
    restarts.retryAll();
    assert.deepEqual(restarts.setAside, []);
  });
});

describe("what the import thread works on", () => {
  it("stands in the memory that it shares as long as it works on it", async () => {
    const memory = newTaskMemory();
    const tasks = new CurrentTasks(memory, false);
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const works = [
      tasks.run(task("a"), () => first.promise),
      assert.rejects(
        tasks.run(task("b"), () => second.promise),
        /cannot be read/,
      ),
    ];
    assert.deepEqual(
      tasksIn(memory)
        .map(({ key }) => key)
        .toSorted(),
      ["a", "b"],
    );
    second.reject(new Error("it cannot be read"));
    await works[1];
    assert.deepEqual(tasksIn(memory), [task("a")]);
    first.resolve();
    await works[0];
    assert.deepEqual(tasksIn(memory), []);
  });

  it("is one thing at a time in a careful thread", async () => {
    const memory = newTaskMemory();
    const tasks = new CurrentTasks(memory, true);
    const seen: (string | null)[] = [];
    const look = async (): Promise<void> => void seen.push(...tasksIn(memory).map(({ key }) => key));
    await Promise.all(["a", "b", "c"].map((key) => tasks.run(task(key), look)));
    assert.deepEqual(seen, ["a", "b", "c"]);
  });
});
