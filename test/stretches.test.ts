import assert from "node:assert/strict";
import { test } from "node:test";
import { ATTACKS, LONG_MESSAGES, STRETCH_MAX_MS, withFiftyAtWork } from "./support/attacks.ts";

test("with fifty sessions at work no attack holds the main thread for 50 ms of processor time, and cancel works", async (t) => {
  await withFiftyAtWork(async (measure) => {
    for (const [what, attack] of Object.entries({ ...ATTACKS, ...LONG_MESSAGES })) {
      const { longestMs, wallMs } = await measure(what, attack);
      t.diagnostic(`${what}: ${longestMs.toFixed(0)} ms (all of it ${(wallMs / 1000).toFixed(1)} s)`);
      assert.ok(longestMs <= STRETCH_MAX_MS, `${what}: a stretch of ${longestMs} ms`);
    }
  });
});
