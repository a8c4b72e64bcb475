import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { Carrier, MessageKind } from "../contract/index.ts";
import { type Landing, landingOf, isWork, type TakenMessage } from "./landing.ts";
import { checkProperty } from "../testing/seeds.ts";

const BY_PROMPT: TakenMessage = {
  kind: "prompt",
  carrier: "prompt",
  isAcknowledged: false,
  reach: "unanswered",
  hasBegun: false,
  inRecord: null,
  isStopped: false,
};
const BY_STEER: TakenMessage = { ...BY_PROMPT, carrier: "steer" };
const BY_TOOL: TakenMessage = { ...BY_PROMPT, carrier: "tool" };
const WORK = ["prompt", "tell"] as const;
const INFORMATION = ["callback", "answer", "trigger", "notice"] as const;

/** Columns: what happened, a message's facts, changes to them, how work and how information must land. */
const TABLE: readonly (readonly [string, TakenMessage, Partial<TakenMessage>, Landing, Landing])[] = [
  ["the agent answered its prompt", BY_PROMPT, { reach: "answered" }, "landed", "landed"],
  ["stopped, and the agent answered", BY_PROMPT, { reach: "answered", isStopped: true }, "landed", "landed"],
  ["the agent could not be started", BY_PROMPT, { reach: "unsent" }, "returned", "returned"],
  ["stopped while starting", BY_PROMPT, { reach: "unsent", isStopped: true }, "unwanted", "returned"],
  ["stopped while starting, then the daemon killed", BY_PROMPT, { isStopped: true }, "unknown", "repeated"],
  ["the agent died without a sign, no record", BY_PROMPT, {}, "unknown", "repeated"],
  ["the agent died at work, no record", BY_PROMPT, { hasBegun: true }, "landed", "repeated"],
  ["the agent died, its record has it", BY_PROMPT, { inRecord: true }, "landed", "landed"],
  ["the agent died, its record lacks it", BY_PROMPT, { inRecord: false }, "returned", "returned"],
  [
    "it died at work, its record lacks it",
    BY_PROMPT,
    { inRecord: false, hasBegun: true },
    "landed",
    "repeated",
  ],
  [
    "acknowledged, and the turn was answered",
    BY_STEER,
    { reach: "answered", isAcknowledged: true },
    "landed",
    "landed",
  ],
  ["never acknowledged, and the turn was answered", BY_STEER, { reach: "answered" }, "repeated", "repeated"],
  [
    "acknowledged, then the agent died",
    BY_STEER,
    { isAcknowledged: true, hasBegun: true },
    "unknown",
    "repeated",
  ],
  ["never acknowledged, then the agent died", BY_STEER, { hasBegun: true }, "unknown", "repeated"],
  ["acknowledged, the record has it", BY_STEER, { isAcknowledged: true, inRecord: true }, "landed", "landed"],
  [
    "acknowledged, the record lacks it",
    BY_STEER,
    { isAcknowledged: true, inRecord: false },
    "returned",
    "returned",
  ],
  ["in a reply, its id not seen in a result", BY_TOOL, { reach: "answered" }, "repeated", "repeated"],
  ["in a reply, then the agent died", BY_TOOL, { hasBegun: true }, "repeated", "repeated"],
  ["in a reply, the record has it", BY_TOOL, { inRecord: true }, "landed", "landed"],
];

for (const [what, base, known, ofWork, ofInformation] of TABLE) {
  test(`taken by ${base.carrier}, ${what}: work is ${ofWork}, information ${ofInformation}`, () => {
    for (const kind of WORK) assert.equal(landingOf({ ...base, ...known, kind }), ofWork, kind);
    for (const kind of INFORMATION) assert.equal(landingOf({ ...base, ...known, kind }), ofInformation, kind);
  });
}

test("nothing has landed without an answer, work begun or a record, and no information is given up", () => {
  const anyMessage: fc.Arbitrary<TakenMessage> = fc.record({
    kind: fc.constantFrom(...MessageKind.options),
    carrier: fc.constantFrom(...Carrier.options),
    isAcknowledged: fc.boolean(),
    reach: fc.constantFrom("unsent", "unanswered", "answered"),
    hasBegun: fc.boolean(),
    inRecord: fc.option(fc.boolean()),
    isStopped: fc.boolean(),
  });
  checkProperty(
    import.meta.filename,
    fc.property(anyMessage, (message) => {
      const fate = landingOf(message);
      const hasEvidence = message.reach === "answered" || message.hasBegun || message.inRecord === true;
      if (fate === "landed") assert.ok(hasEvidence);
      if (!isWork(message.kind)) assert.ok(fate !== "unknown" && fate !== "unwanted");
    }),
  );
});

test("prompts and what a parent tells are work; the rest is information", () => {
  assert.deepEqual(MessageKind.options.filter(isWork), ["prompt", "tell"]);
});
