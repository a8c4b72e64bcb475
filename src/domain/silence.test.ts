import assert from "node:assert/strict";
import { it } from "node:test";
import { nextLookMs, silenceReason, silenceWords } from "./silence.ts";

const MINUTE = 60_000;

it("silence says for how long and what is known", () => {
  const words = [
    silenceWords({ silentMs: 2 * MINUTE, tool: null, retrying: null }),
    silenceWords({ silentMs: 15_000, tool: "npm test", retrying: null }),
    silenceWords({
      silentMs: 5_000,
      tool: null,
      retrying: { status: 401, attempt: 2, attemptsMax: 10 },
    }),
    silenceWords({
      silentMs: 5_000,
      tool: null,
      retrying: { status: null, attempt: null, attemptsMax: null },
    }),
    silenceReason(20 * MINUTE),
  ];
  assert.deepEqual(words, [
    "nothing heard for 2 min: waiting for its model",
    "nothing heard for 15 s: in npm test, but no process of it is running",
    "nothing heard for 5 s: its agent is retrying after 401, attempt 2 of 10",
    "nothing heard for 5 s: its agent is retrying after a failed connection",
    "no sign of life for 20 min, stopped",
  ]);
});

it("a silent agent is looked at soon, then every minute, and at every limit", () => {
  const looks: number[] = [];
  for (let at = 0; looks.length < 8; at = looks.at(-1)!) looks.push(nextLookMs(at, [150_000, 20 * MINUTE]));
  assert.deepEqual(looks, [15_000, 30_000, 60_000, 120_000, 150_000, 180_000, 240_000, 300_000]);
});
