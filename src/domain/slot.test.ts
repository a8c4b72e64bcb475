import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import {
  agentOf,
  effectsOf,
  evolve,
  type Limit,
  limitOf,
  newSlot,
  type Slot,
  type SlotEffect,
  type SlotEvent,
  turnOf,
} from "./slot.ts";
import { checkProperty } from "../testing/seeds.ts";

type TestSlot = Slot<string, string>;
type TestEvent = SlotEvent<string, string>;

const LIMIT: Limit = { reason: "0.50 of 0.50 USD used", kind: "budget" };
const LATER: Limit = { reason: "silent for an hour", kind: "silence" };
const LEFT = [{ pid: 7, startTime: 1, command: "sleep" }];
const IDLE = { phase: "idle", agent: "agent", since: 1, isClaimed: false, hasBackground: true } as const;
const ENDING = { phase: "ending", agent: "agent", unsettled: null, hasEnded: false, left: [] } as const;
const UNSETTLED = { turn: "turn", limit: null, isStopped: false } as const;

/** One slot for each phase, and for each condition on which the effect of an event depends. */
const SLOTS = {
  starting: { phase: "starting", turn: "turn", limit: null },
  prompting: { phase: "prompting", agent: "agent", turn: "turn", limit: null, isPlanSentBack: false },
  stopping: { phase: "stopping", agent: "agent", turn: "turn", limit: null },
  idle: IDLE,
  "idle, claimed": { ...IDLE, since: null, isClaimed: true },
  ending: ENDING,
  "ending, no agent": { ...ENDING, agent: null },
  "ending, unsettled": { ...ENDING, unsettled: UNSETTLED },
  "ended, unsettled": { ...ENDING, agent: null, unsettled: UNSETTLED, hasEnded: true, left: LEFT },
  gone: { phase: "gone", left: [] },
} as const satisfies Record<string, TestSlot>;

const EVENTS = {
  begin: { type: "begin", turn: "next" },
  started: { type: "started", agent: "new" },
  restart: { type: "restart", turn: "turn" },
  stop: { type: "stop", turn: "turn" },
  limit: { type: "limit", turn: "turn", limit: LIMIT },
  plan: { type: "plan", turn: "turn", isSentBack: true },
  settled: { type: "settled", turn: "turn", hasBackground: false, at: 9 },
  claim: { type: "claim" },
  releaseClaim: { type: "releaseClaim", at: 9 },
  beginAutonomous: { type: "beginAutonomous" },
  dropAutonomous: { type: "dropAutonomous", at: 9 },
  backgroundOver: { type: "backgroundOver" },
  exited: { type: "exited", agent: "agent" },
  end: { type: "end" },
  release: { type: "release" },
  ended: { type: "ended", left: LEFT },
} as const satisfies { [type in TestEvent["type"]]: TestEvent };

const NO_TURN = "no: the slot is not in this turn";
const NOT_IDLE = "no: the slot is not idle";
const BUSY = "no: the slot is in another turn";
const NO_AGENT_WANTED = "no: the slot does not wait for an agent";
const STOPPED = "no: the turn is being stopped already";
const NO_REPLACEMENT = "no: the turn is being stopped, or has no agent to replace";
const NOT_AT_WORK = "no: the turn is not at work";
const CLAIMING = "no: it is being claimed";
const NO_END = "no: no process of it is ending";
const ENDS = "no: the slot is ending already";

const NOT_IDLE_EVENTS = {
  claim: NOT_IDLE,
  releaseClaim: NOT_IDLE,
  beginAutonomous: NOT_IDLE,
  dropAutonomous: NOT_IDLE,
  backgroundOver: NOT_IDLE,
  exited: NOT_IDLE,
} as const;
const NO_TURN_EVENTS = {
  restart: NO_TURN,
  stop: NO_TURN,
  limit: NO_TURN,
  plan: NO_TURN,
  settled: NO_TURN,
} as const;

/** For each slot and event: the next phase and other changes, or why the event is refused. */
const TABLE: Record<keyof typeof SLOTS, Record<TestEvent["type"], string>> = {
  starting: {
    begin: BUSY,
    started: "prompting agent=new",
    restart: NO_REPLACEMENT,
    stop: "no: there is no agent to ask yet",
    limit: "starting limit",
    plan: NOT_AT_WORK,
    settled: "no: a slot without an agent ends before its turn settles",
    ...NOT_IDLE_EVENTS,
    end: "ending no agent unsettled → endProcess",
    release: "ending no agent → endProcess",
    ended: NO_END,
  },
  prompting: {
    begin: BUSY,
    started: NO_AGENT_WANTED,
    restart: "starting",
    stop: "stopping → askToStop",
    limit: "stopping limit → askToStop",
    plan: "prompting sentBack",
    settled: "idle since=9 → waitIdle",
    ...NOT_IDLE_EVENTS,
    end: "ending unsettled → endProcess",
    release: "ending → endProcess",
    ended: NO_END,
  },
  stopping: {
    begin: BUSY,
    started: NO_AGENT_WANTED,
    restart: NO_REPLACEMENT,
    stop: STOPPED,
    limit: "stopping limit",
    plan: NOT_AT_WORK,
    settled: "idle since=9 → forgetStop waitIdle",
    ...NOT_IDLE_EVENTS,
    end: "ending unsettled stopped → forgetStop endProcess",
    release: "ending → forgetStop endProcess",
    ended: NO_END,
  },
  idle: {
    begin: "prompting turn=next → forgetIdle",
    started: NO_AGENT_WANTED,
    ...NO_TURN_EVENTS,
    claim: "idle since=null claimed background → forgetIdle",
    releaseClaim: "no: it was not claimed",
    beginAutonomous: "idle since=null background → forgetIdle",
    dropAutonomous: "idle since=9 background → forgetIdle waitIdle",
    backgroundOver: "idle since=1",
    exited: "ending → forgetIdle endProcess",
    end: "ending → forgetIdle endProcess",
    release: "ending → forgetIdle endProcess",
    ended: NO_END,
  },
  "idle, claimed": {
    begin: "prompting turn=next",
    started: NO_AGENT_WANTED,
    ...NO_TURN_EVENTS,
    claim: CLAIMING,
    releaseClaim: "idle since=9 background → waitIdle",
    beginAutonomous: "idle since=null claimed background",
    dropAutonomous: CLAIMING,
    backgroundOver: "idle since=null claimed",
    exited: CLAIMING,
    end: "ending → endProcess",
    release: "ending → endProcess",
    ended: NO_END,
  },
  ending: {
    begin: "ending unsettled turn=next",
    started: NO_AGENT_WANTED,
    ...NO_TURN_EVENTS,
    ...NOT_IDLE_EVENTS,
    end: ENDS,
    release: "ending",
    ended: "gone left → leave",
  },
  "ending, no agent": {
    begin: "ending no agent unsettled turn=next",
    started: "ending agent=new",
    ...NO_TURN_EVENTS,
    ...NOT_IDLE_EVENTS,
    end: ENDS,
    release: "ending no agent",
    ended: "gone left → leave",
  },
  "ending, unsettled": {
    begin: BUSY,
    started: NO_AGENT_WANTED,
    restart: NO_REPLACEMENT,
    stop: STOPPED,
    limit: "ending unsettled limit",
    plan: NOT_AT_WORK,
    settled: "ending",
    ...NOT_IDLE_EVENTS,
    end: ENDS,
    release: "ending",
    ended: "ending no agent unsettled ended left",
  },
  "ended, unsettled": {
    begin: BUSY,
    started: NO_AGENT_WANTED,
    restart: NO_REPLACEMENT,
    stop: STOPPED,
    limit: "ending no agent unsettled limit ended left",
    plan: NOT_AT_WORK,
    settled: "gone left → leave",
    ...NOT_IDLE_EVENTS,
    end: ENDS,
    release: "gone left → leave",
    ended: NO_END,
  },
  gone: {
    begin: "no: the slot is gone; recovery takes the turn up",
    started: NO_AGENT_WANTED,
    ...NO_TURN_EVENTS,
    ...NOT_IDLE_EVENTS,
    end: ENDS,
    release: "no: the slot is gone",
    ended: NO_END,
  },
};

for (const [name, row] of Object.entries(TABLE)) {
  test(`what each event does to a slot that is ${name}`, () => {
    const slot: TestSlot = SLOTS[name as keyof typeof SLOTS];
    for (const [type, expected] of Object.entries(row)) {
      assert.equal(outcome(slot, EVENTS[type as TestEvent["type"]]), expected, `${name}: ${type}`);
    }
  });
}

test("an event that names another turn or another agent changes no slot", () => {
  const late: TestEvent[] = [
    { type: "restart", turn: "other" },
    { type: "stop", turn: "other" },
    { type: "limit", turn: "other", limit: LIMIT },
    { type: "plan", turn: "other", isSentBack: true },
    { type: "settled", turn: "other", hasBackground: false, at: 9 },
    { type: "exited", agent: "other" },
  ];
  for (const [name, slot] of Object.entries(SLOTS)) {
    for (const event of late)
      assert.equal(evolve<string, string>(slot, event).ok, false, `${name}: ${event.type}`);
  }
});

test("the first limit that a turn reaches is the one that it fails with", () => {
  for (const limit of [LIMIT, LATER]) {
    const after = [limit, LIMIT, LATER].reduce<TestSlot>(
      (slot, each) => applied(slot, { type: "limit", turn: "turn", limit: each }),
      SLOTS.starting,
    );
    assert.equal(limitOf(after), limit);
    assert.equal(limitOf(applied(after, EVENTS.started)), limit, "it is kept when the agent has started");
    assert.equal(limitOf(applied(after, EVENTS.end)), limit, "it is kept while the process ends");
  }
});

test("whatever happens, a slot that ends leaves once, and only without a turn", () => {
  const types = Object.keys(EVENTS) as TestEvent["type"][];
  checkProperty(
    import.meta.filename,
    fc.property(fc.array(fc.constantFrom(...types), { maxLength: 60 }), (sequence) => {
      let slot: TestSlot = newSlot("turn");
      const effects: SlotEffect[] = [];
      for (const type of [...sequence, "release", "ended"] as const) {
        const after = evolve(slot, EVENTS[type]);
        if (!after.ok) continue;
        effects.push(...effectsOf(slot, after.slot));
        slot = after.slot;
        assert.ok(slot.phase !== "gone" || turnOf(slot) === null);
      }
      assert.equal(slot.phase, "gone");
      for (const once of ["endProcess", "leave"] as const)
        assert.equal(effects.filter((each) => each === once).length, 1, once);
      const count = (of: SlotEffect): number => effects.filter((each) => each === of).length;
      assert.equal(count("waitIdle"), count("forgetIdle"), "no timer of idleness is left");
      assert.equal(count("askToStop"), count("forgetStop"), "no timer of a stop is left");
    }),
  );
});

function applied(slot: TestSlot, event: TestEvent): TestSlot {
  const after = evolve(slot, event);
  assert.ok(after.ok, event.type);
  return after.slot;
}

/** Describes the outcome in the table's notation. */
function outcome(slot: TestSlot, event: TestEvent): string {
  const after = evolve(slot, event);
  if (!after.ok) return `no: ${after.why}`;
  const effects = effectsOf(slot, after.slot);
  const words = [after.slot.phase, ...changes(after.slot)];
  if (effects.length > 0) words.push("→", ...effects);
  return words.join(" ");
}

function changes(slot: TestSlot): string[] {
  const [agent, turn] = [agentOf(slot), turnOf(slot)];
  const isWithout = agent === null && slot.phase === "ending";
  return [
    isWithout ? "no agent" : "",
    agent === "new" ? "agent=new" : "",
    slot.phase === "idle" ? `since=${slot.since}` : "",
    slot.phase === "idle" && slot.isClaimed ? "claimed" : "",
    slot.phase === "idle" && slot.hasBackground ? "background" : "",
    slot.phase === "ending" && slot.unsettled !== null ? "unsettled" : "",
    slot.phase === "ending" && slot.unsettled?.isStopped === true ? "stopped" : "",
    turn === "next" ? "turn=next" : "",
    limitOf(slot) === null ? "" : "limit",
    slot.phase === "prompting" && slot.isPlanSentBack ? "sentBack" : "",
    slot.phase === "ending" && slot.hasEnded ? "ended" : "",
    (slot.phase === "ending" || slot.phase === "gone") && slot.left.length > 0 ? "left" : "",
  ].filter((word) => word !== "");
}
