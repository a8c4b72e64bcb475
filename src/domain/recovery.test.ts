import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { type CutTurn, isLoadFailure, mayBeginAfresh, mayResume, recoveryOf } from "./recovery.ts";
import { checkProperty } from "../testing/seeds.ts";

const CUT: CutTurn = {
  sessionEnded: false,
  stopAsked: false,
  agentSessionId: "a",
  canLoad: true,
  kind: "prompt",
};

for (const [what, fields, recovery] of [
  ["a turn whose agent can be loaded", {}, "load"],
  ["a turn whose agent was never opened", { agentSessionId: null }, "restart"],
  ["a turn whose agent cannot load", { canLoad: false }, "interrupt"],
  ["work outside a prompt", { kind: "autonomous" }, "interrupt"],
  ["a turn of a session that was cancelled", { sessionEnded: true }, "settle"],
  ["a turn that somebody stopped", { stopAsked: true, agentSessionId: null }, "settle"],
] as const) {
  test(`${what}: ${recovery}`, () => {
    assert.equal(recoveryOf({ ...CUT, ...fields }), recovery);
  });
}

test("neither what somebody stopped nor work outside a prompt is ever resumed", () => {
  const anyTurn: fc.Arbitrary<CutTurn> = fc.record({
    sessionEnded: fc.boolean(),
    stopAsked: fc.boolean(),
    agentSessionId: fc.option(fc.constant("a")),
    canLoad: fc.boolean(),
    kind: fc.constantFrom("prompt", "autonomous"),
  });
  checkProperty(
    import.meta.filename,
    fc.property(anyTurn, (turn) => {
      const recovery = recoveryOf(turn);
      const isResumed = recovery === "load" || recovery === "restart";
      if (turn.sessionEnded || turn.stopAsked) assert.equal(recovery, "settle");
      if (turn.kind === "autonomous") assert.equal(isResumed, false);
      if (recovery === "load") assert.ok(turn.canLoad && turn.agentSessionId !== null);
    }),
  );
});

test("a turn goes on after two attempts in which its agent worked, and later only where it called no tool", () => {
  const goesOn = (attemptsBegun: number, toolCalls: number): boolean =>
    mayResume({ attemptsBegun, toolCalls });
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((attempts) => goesOn(attempts, 1)),
    [true, true, true, false, false],
  );
  assert.ok([0, 3, 100].every((attempts) => goesOn(attempts, 0)));
});

for (const [what, failure, fields, isAfresh] of [
  ["whose agent has no such session", "no_session", {}, true],
  ["whose agent cannot load a session", "no_load", {}, false],
  ["whose load failed otherwise or got no answer", "load_failed", {}, false],
  ["whose agent could not be started", null, {}, false],
  ["whose agent had begun to work, and has no such session", "no_session", { attemptsBegun: 1 }, false],
  ["whose agent had such a session before, and has none", "no_session", { index: 1 }, false],
] as const) {
  test(`a cut turn ${what} ${isAfresh ? "begins anew" : "is not prompted again"}`, () => {
    assert.equal(mayBeginAfresh(failure, { index: 0, attemptsBegun: 0, ...fields }), isAfresh);
  });
}

test("only the failures to load a session are load failures", () => {
  const reasons = ["no_load", "no_session", "load_failed", "fork_failed", "exited", "not_installed"];
  assert.deepEqual(reasons.filter(isLoadFailure), ["no_load", "no_session", "load_failed"]);
});
