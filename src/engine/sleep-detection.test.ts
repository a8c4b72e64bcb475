import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { runnableMs } from "../system/runnable-time.ts";
import { type Beat, sleptBetween } from "./heartbeat.ts";

const from: Beat = { wall: 1_000_000, monotonic: 5_000, runnable: 200 };
const later = (wall: number, monotonic: number, runnable: number): Beat => ({
  wall: from.wall + wall,
  monotonic: from.monotonic + monotonic,
  runnable: from.runnable + runnable,
});

test("a stall of the event loop is not sleep; a stopped process and a sleeping machine are", () => {
  const table: [string, Beat, number][] = [
    ["a beat in time", later(1_000, 1_000, 10), 0],
    ["a stall of 45 s at work", later(46_000, 46_000, 45_000), 0],
    ["a stall on a machine that gave it little time", later(61_000, 61_000, 60_500), 0],
    ["stopped for 20 s", later(21_000, 21_000, 10), 19_990],
    ["stopped for 20 s after a stall of 5 s", later(26_000, 26_000, 5_000), 20_000],
    ["the machine slept for an hour, its monotonic clock with it", later(3_601_000, 1_000, 10), 3_600_000],
    [
      "the machine slept for an hour, its monotonic clock went on",
      later(3_601_000, 3_601_000, 10),
      3_599_990,
    ],
    ["a clock that was set back", later(-3_600_000, 1_000, 10), 0],
  ];
  for (const [what, after, sleptMs] of table) assert.equal(sleptBetween(from, after, 1_000), sleptMs, what);
});

/** The system may count the time that a thread has run in steps of this length. */
const STEP_MS = 20;

test("a thread that is busy is runnable, one that waits is not", () => {
  const cpuMs = (): number => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  const [start, cpu] = [runnableMs(), cpuMs()];
  while (cpuMs() - cpu < 300);
  const busy = runnableMs() - start;
  assert.ok(busy >= 290, `${busy} ms`);
  // The clock is read first and last, so that on a busy machine the time between two lines does not count.
  const [at, idle] = [performance.now(), runnableMs()];
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
  const [ranMs, wallMs] = [runnableMs() - idle, performance.now() - at];
  assert.ok(wallMs - ranMs >= 500 - STEP_MS, `${ranMs} of ${wallMs} ms`);
});

test("a process that is stopped is not runnable meanwhile", { skip: whyNot() }, async () => {
  const file = new URL("../system/runnable-time.ts", import.meta.url).href;
  const code = `const { runnableMs } = await import(${JSON.stringify(file)});
    process.stdin.on("data", () => {
      const ranMs = runnableMs();
      console.log(performance.now() - ranMs);
    });
    console.log(performance.now() - runnableMs());`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const before = Number((await lines.next()).value);
    child.kill("SIGSTOP");
    while (!/\) T /.test(readFileSync(`/proc/${child.pid}/stat`, "latin1"))) await pause(5);
    const stoppedAt = performance.now();
    await pause(1_000);
    const stoppedMs = performance.now() - stoppedAt;
    child.kill("SIGCONT");
    child.stdin.write("now\n");
    const notRunnable = Number((await lines.next()).value) - before;
    assert.ok(notRunnable >= stoppedMs - STEP_MS, `${notRunnable} of ${stoppedMs} ms`);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

function whyNot(): string | false {
  return process.platform === "linux" ? false : "only Linux says whether a process is stopped";
}
