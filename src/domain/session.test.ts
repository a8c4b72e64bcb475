import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  outcomeOf,
  releases,
  reportOf,
  roundHasCompleted,
  type RoundFacts,
  statusOf,
  type TurnSaid,
} from "./session.ts";
import { checkProperty } from "../testing/seeds.ts";

const OVER: RoundFacts = {
  ended: false,
  roundOpen: true,
  roundOpenedAt: 1,
  held: false,
  turnRunning: false,
  lastTurn: "completed",
  openMessages: 0,
  openTriggers: 0,
  openTriggerId: null,
  backgroundUntil: null,
  parked: null,
  awaitedChildren: 0,
  updatedAt: 5,
};

const anyFacts: fc.Arbitrary<RoundFacts> = fc.record({
  ended: fc.boolean(),
  roundOpen: fc.boolean(),
  roundOpenedAt: fc.option(fc.nat()),
  held: fc.boolean(),
  turnRunning: fc.boolean(),
  lastTurn: fc.constantFrom("completed", "failed", "cancelled", "interrupted", null),
  openMessages: fc.nat(3),
  openTriggers: fc.nat(3),
  openTriggerId: fc.option(fc.constant("t")),
  backgroundUntil: fc.option(fc.nat()),
  parked: fc.option(fc.constant({ on: "limit" as const, since: 1, until: null })),
  awaitedChildren: fc.nat(3),
  updatedAt: fc.nat(),
});

test("an open round without anything to wait for has completed", () => {
  assert.equal(roundHasCompleted(OVER), true);
});

for (const [what, facts] of Object.entries<Partial<RoundFacts>>({
  "a round that is closed": { roundOpen: false },
  "a session that has ended": { ended: true },
  "a running turn": { turnRunning: true },
  "a message queued or taken": { openMessages: 1 },
  "an open trigger": { openTriggers: 1 },
  "background work": { backgroundUntil: 9 },
  "an awaited child": { awaitedChildren: 1 },
})) {
  test(`${what} completes nothing`, () => {
    assert.equal(roundHasCompleted({ ...OVER, ...facts }), false);
  });
}

test("a round has completed if and only if none of its reasons to stay open holds", () => {
  checkProperty(
    import.meta.filename,
    fc.property(anyFacts, (facts) => {
      const reasons = [
        !facts.roundOpen,
        facts.ended,
        facts.turnRunning,
        facts.openMessages > 0,
        facts.openTriggers > 0,
        facts.backgroundUntil !== null,
        facts.parked !== null,
        facts.awaitedChildren > 0,
      ];
      assert.equal(roundHasCompleted(facts), !reasons.includes(true));
    }),
  );
});

test("a reason to stay open is never overruled by another one going away", () => {
  checkProperty(
    import.meta.filename,
    fc.property(anyFacts, (facts) => {
      if (!roundHasCompleted(facts)) return;
      for (const more of [{ turnRunning: true }, { openMessages: 1 }, { awaitedChildren: 1 }]) {
        assert.equal(roundHasCompleted({ ...facts, ...more }), false);
      }
    }),
  );
});

test("every session has exactly one status, and one that waits says on what", () => {
  checkProperty(
    import.meta.filename,
    fc.property(anyFacts, (facts) => {
      const { status, waiting } = statusOf(facts);
      assert.equal(status === "waiting", waiting !== null);
      if (facts.ended) assert.equal(status, "ended");
      else if (facts.turnRunning) assert.notEqual(status, "idle");
      else assert.equal(status === "idle", !facts.roundOpen);
    }),
  );
});

for (const [facts, status, on] of [
  [{ roundOpen: false }, "idle", undefined],
  [{ turnRunning: true, openTriggerId: "t" }, "waiting", "trigger"],
  [{ turnRunning: true, awaitedChildren: 1 }, "running", undefined],
  [{ openTriggerId: "t", openMessages: 1 }, "waiting", "trigger"],
  [{ openMessages: 1, awaitedChildren: 1 }, "waiting", "slot"],
  [{ awaitedChildren: 1, backgroundUntil: 9 }, "waiting", "children"],
  [{ backgroundUntil: 9 }, "running", undefined],
  [{ ended: true, turnRunning: true }, "ended", undefined],
] as const) {
  test(`${JSON.stringify(facts)} reads ${status} ${on ?? ""}`, () => {
    const found = statusOf({ ...OVER, ...facts });
    assert.deepEqual([found.status, found.waiting?.on], [status, on]);
  });
}

const PARENT = { kind: "session", id: "parent" } as const;
const PERSON = { kind: "person", id: "p" } as const;
for (const [held, sender, isReleased] of [
  [null, { kind: "daemon", id: null }, true],
  ["failed", { kind: "daemon", id: null }, true],
  ["failed", { kind: "session", id: "child" }, true],
  ["stopped", PERSON, true],
  ["stopped", PARENT, true],
  ["stopped", { kind: "session", id: "child" }, false],
  ["stopped", { kind: "outside", id: "parent" }, false],
  ["stopped", { kind: "daemon", id: null }, false],
] as const) {
  test(`${sender.kind} ${sender.id} ${isReleased ? "releases" : "leaves"} an inbox held: ${held}`, () => {
    assert.equal(releases(held, sender, "parent"), isReleased);
  });
}

test("a root that was stopped is not released by a session without a name", () => {
  assert.equal(releases("stopped", { kind: "session", id: "x" }, null), false);
});

for (const [stopReason, byUs, outcome] of [
  ["end_turn", false, "completed"],
  ["end_turn", true, "completed"],
  ["cancelled", true, "cancelled"],
  ["cancelled", false, "interrupted"],
  ["max_tokens", false, "failed"],
  ["max_turn_requests", false, "failed"],
  ["refusal", false, "failed"],
  ["error", false, "failed"],
  ["exited", false, "failed"],
  ["exited", true, "cancelled"],
  ["never heard of", false, "failed"],
] as const) {
  test(`${stopReason}${byUs ? ", stopped by us," : ""} is ${outcome}`, () => {
    assert.equal(outcomeOf(stopReason, byUs), outcome);
  });
}

const asked = (lastMessage: string | null): TurnSaid => ({ lastMessage, isAboutCallbacks: false });
const called = (lastMessage: string | null): TurnSaid => ({ lastMessage, isAboutCallbacks: true });
const REPORT = "The login works: three tests added, all green.";
const LONGER = `${REPORT} The child found one more case, which is fixed too.`;

for (const [what, turns, report, lastWords] of [
  ["a round without a word has no report", [asked(null), asked("  ")], null, null],
  ["a round's only message is its report", [asked(REPORT)], REPORT, null],
  [
    "a short answer to a callback does not replace the report",
    [asked(REPORT), called("noted")],
    REPORT,
    "noted",
  ],
  ["nor do several", [asked(REPORT), called("noted"), called("fine")], REPORT, "fine"],
  ["a longer answer to a callback is the new report", [asked(REPORT), called(LONGER)], LONGER, null],
  ["an answer to a prompt is the new report, however short", [asked(REPORT), asked("No.")], "No.", null],
  [
    "an answer to a callback is the report where there is none",
    [asked(null), called("noted")],
    "noted",
    null,
  ],
  ["a silent turn changes nothing", [asked(REPORT), called(null)], REPORT, null],
] as const) {
  test(what, () => {
    assert.deepEqual(reportOf(turns), { report, lastWords });
  });
}
