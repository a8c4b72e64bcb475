import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { type CutTurn, recoveryOf } from "./recovery.ts";

const CUT: CutTurn = {
  sessionEnded: false,
  stopAsked: false,
  agentSessionId: "a",
  canLoad: true,
  attempt: 1,
  kind: "prompt",
};

for (const [what, fields, recovery] of [
  ["a turn whose agent can be loaded", {}, "load"],
  ["a turn that was resumed once", { attempt: 2 }, "load"],
  ["a turn that was resumed twice", { attempt: 3 }, "interrupt"],
  ["a turn whose agent was never opened", { agentSessionId: null }, "restart"],
  ["a turn whose agent cannot load", { canLoad: false }, "interrupt"],
  ["work outside a prompt", { kind: "autonomous" }, "interrupt"],
  ["a turn of a session that was cancelled", { sessionEnded: true, attempt: 3 }, "settle"],
  ["a turn that somebody stopped", { stopAsked: true, agentSessionId: null }, "settle"],
] as const) {
  test(`${what}: ${recovery}`, () => {
    assert.equal(recoveryOf({ ...CUT, ...fields }), recovery);
  });
}

test("what somebody stopped is never resumed, and nothing is resumed more than twice", () => {
  const anyTurn: fc.Arbitrary<CutTurn> = fc.record({
    sessionEnded: fc.boolean(),
    stopAsked: fc.boolean(),
    agentSessionId: fc.option(fc.constant("a")),
    canLoad: fc.boolean(),
    attempt: fc.integer({ min: 1, max: 9 }),
    kind: fc.constantFrom("prompt", "autonomous"),
  });
  fc.assert(
    fc.property(anyTurn, (turn) => {
      const recovery = recoveryOf(turn);
      const isResumed = recovery === "load" || recovery === "restart";
      if (turn.sessionEnded || turn.stopAsked) assert.equal(recovery, "settle");
      if (turn.attempt > 2) assert.equal(isResumed, false);
      if (recovery === "load") assert.ok(turn.canLoad && turn.agentSessionId !== null);
    }),
  );
});
