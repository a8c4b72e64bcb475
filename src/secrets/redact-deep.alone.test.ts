import assert from "node:assert/strict";
import { it } from "node:test";
import { redactDeep } from "./redact-deep.ts";

it("many keys that become one mark take time proportional to their number", () => {
  const keyOf = (n: number): string =>
    ["ghp_", String(n).padStart(8, "0"), "C3d4E5f6G7h8I9j0K1l2M3n4O5p6"].join("");
  // Several runs make the time measurable, because the system counts processor time in milliseconds.
  const cost = (count: number): number => {
    const value = Object.fromEntries(Array.from({ length: count }, (_, n) => [keyOf(n), n]));
    const before = process.threadCpuUsage();
    for (let run = 0; run < 6; run += 1) redactDeep(value);
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  };
  cost(500);
  assert.ok(cost(16_000) < 8 * cost(4_000));
});
