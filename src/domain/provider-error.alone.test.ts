import assert from "node:assert/strict";
import { it } from "node:test";
import { providerError } from "./provider-error.ts";

/** The system may count processor time in steps of this length. A shorter time may be measured as 0. */
const STEP_MS = 10;
const TIMES = 50;

it("a text of any length costs no more than its beginning", () => {
  for (const make of [
    (length: number) => "{".repeat(length),
    (length: number) => '"message":"'.repeat(length / 11),
    (length: number) => `{"message":"${"\\".repeat(length)}`,
  ]) {
    const [short, long] = [leastMs(make(50_000)), leastMs(make(5_000_000))];
    assert.ok(long < 4 * Math.max(short, STEP_MS), `50 KB cost ${short} ms, 5 MB ${long} ms`);
  }
});

/** Returns the least processor time of three tries. */
function leastMs(said: string): number {
  const tries = [1, 2, 3].map(() => {
    const before = process.threadCpuUsage();
    for (let times = 0; times < TIMES; times += 1) providerError(said);
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...tries);
}
