import { test } from "node:test";
import { ATTACKS, LONG_MESSAGES, LONG_TEXTS, holdNobodyUp } from "./support/attacks.ts";

test("with fifty sessions at work no attack holds the main thread for 50 ms of processor time, and cancel works", async (t) => {
  await holdNobodyUp(ATTACKS, (told) => t.diagnostic(told));
});

test("with fifty sessions at work no long message holds the main thread for 50 ms of processor time, and cancel works", async (t) => {
  await holdNobodyUp(LONG_MESSAGES, (told) => t.diagnostic(told));
});

test("with fifty sessions at work no long text of a caller holds the main thread for 50 ms of processor time, and cancel works", async (t) => {
  await holdNobodyUp(LONG_TEXTS, (told) => t.diagnostic(told));
});
