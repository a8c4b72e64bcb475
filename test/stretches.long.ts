import { test } from "node:test";
import { HUGE_MESSAGES, holdNobodyUp } from "./support/attacks.ts";

test("with fifty sessions at work no message of 200 MB holds the main thread for 50 ms of processor time, and cancel works", async (t) => {
  await holdNobodyUp(HUGE_MESSAGES, (told) => t.diagnostic(told));
});
