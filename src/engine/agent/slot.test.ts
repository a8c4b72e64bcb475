import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate as immediate } from "node:timers/promises";
import type { AgentHandle } from "../../drivers/port.ts";
import type { Family } from "../../kernel/testing/family.ts";
import { openEngine } from "../testing/engine.ts";
import { aLiveAgent, aRunningSlot } from "../testing/slot.ts";

async function opened(t: TestContext, handle: Partial<AgentHandle> = {}) {
  const engine = await openEngine(t);
  const { family, runner } = engine;
  const session = await family.add(family.rootId, { fence: 1 });
  const turn = await family.startTurn(session.id);
  const running = await aRunningSlot(runner.runtime, { session, turn }, handle);
  return { ...engine, ...running, session, turn, slots: runner.runtime.slots };
}

test("an agent that starts after its slot has ended is ended, and its turn is not begun", async (t) => {
  const { slot, slots } = await opened(t);
  await slot.release();
  assert.deepEqual([slot.state.phase, slots.size], ["gone", 0]);
  const stopped = Promise.withResolvers<number>();
  const stop = async (graceMs: number): Promise<{ left: [] }> => {
    stopped.resolve(graceMs);
    return { left: [] };
  };
  const started = await slot.start(async () => ({ ok: true, agent: aLiveAgent({ stop }) }));
  assert.equal(!started.ok && started.isUnwanted, true);
  assert.equal(await stopped.promise, 0);
  assert.equal(slot.agent, null);
});

test("an agent that starts while its slot is ending ends with it", async (t) => {
  const { slot, recorder } = await opened(t);
  slot.restart(recorder);
  const opening = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const stop = async (): Promise<{ left: [] }> => {
    stopped.resolve();
    return { left: [] };
  };
  const starting = slot.start(async () => {
    await opening.promise;
    return { ok: true, agent: aLiveAgent({ stop }) };
  });
  const ended = slot.end();
  opening.resolve();
  assert.equal((await starting).ok, true);
  await stopped.promise;
  await ended;
  assert.equal(slot.state.phase, "ending", "its turn has yet to settle");
  slot.settled(recorder, false);
  assert.equal(slot.state.phase, "gone");
});

test("an agent that does not obey a stop is ended after the grace period, and one that does is not", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  for (const isObeyed of [true, false]) {
    let cancels = 0;
    const { slot, recorder, deps } = await opened(t, { cancel: () => void (cancels += 1) });
    assert.equal(slot.stop(recorder), true);
    assert.equal(slot.stop(recorder), false, "it is asked once");
    assert.equal(cancels, 1);
    if (isObeyed) slot.settled(recorder, false);
    t.mock.timers.tick(deps.config.cancelGraceMs);
    assert.equal(slot.state.phase, isObeyed ? "idle" : "ending");
  }
});

test("a process stays while its round is open, and ends some time after it has closed", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { slot, recorder, family, session, turn, deps, slots } = await opened(t);
  const { idleMs } = deps.config;
  await family.settleTurn(turn);
  slot.settled(recorder, false);
  const letIdle = async (): Promise<void> => {
    const looked = nextLook(family, session.id);
    t.mock.timers.tick(idleMs);
    await looked;
  };
  for (let times = 0; times < 2; times += 1) {
    await letIdle();
    assert.equal(slot.state.phase, "idle", "its round is open");
  }
  await family.write((tx) => tx.sessions.patch(session.id, { roundOpen: false, roundClosedAt: Date.now() }));
  await letIdle();
  assert.equal(slot.state.phase, "idle", "its round has just closed");
  t.mock.method(deps, "now", () => Date.now() + idleMs);
  await letIdle();
  assert.equal(slot.isEnding, true);
  await slot.end();
  assert.equal(slots.size, 0);
});

/** Resolves when the slot has read its session and has decided whether to end. */
async function nextLook(family: Family, id: string): Promise<void> {
  const looked = Promise.withResolvers<void>();
  const { sessions } = family.store.read;
  const { byId } = sessions;
  Object.assign(sessions, {
    async byId(asked: string) {
      const session = await byId(asked);
      if (asked === id) looked.resolve();
      return session;
    },
  });
  await looked.promise;
  Object.assign(sessions, { byId });
  // From the read to the decision there are only microtasks.
  await immediate();
}

test("a late report about a turn does not affect the next turn", async (t) => {
  const { slot, recorder, family, session, turn } = await opened(t);
  await family.settleTurn(turn);
  slot.settled(recorder, false);
  const next = slot.begin(await family.startTurn(session.id));
  assert.ok(next !== null);
  const limit = { reason: "over", kind: "budget" } as const;
  const late = [slot.stop(recorder), slot.exceed(recorder, limit), slot.restart(recorder)];
  assert.deepEqual([...late, slot.settled(recorder, true)], [false, false, false, false]);
  assert.deepEqual([slot.state.phase, slot.recorder === next, slot.limit], ["prompting", true, null]);
});

test("a turn that fails in our own code stays open for recovery, and its slot leaves", async (t) => {
  const { slot, family, turn, slots } = await opened(t);
  slot.follow(Promise.reject(new Error("a bug")));
  await slot.task;
  assert.deepEqual([slot.state.phase, slots.size], ["gone", 0]);
  assert.equal((await family.store.read.turns.byId(turn.id))?.status, "running");
});

test("an idle agent that exits ends its slot, unless a turn is being claimed for it", async (t) => {
  for (const isClaimed of [false, true]) {
    const exit = Promise.withResolvers<never>();
    const { slot, recorder } = await opened(t, { exited: exit.promise });
    slot.settled(recorder, false);
    if (isClaimed) slot.claim();
    exit.resolve({ code: 0, signal: null, stderrTail: "" } as never);
    await exit.promise;
    await Promise.resolve();
    assert.equal(slot.isEnding, !isClaimed);
    slot.releaseClaim();
    assert.equal(slot.isEnding, true, "the end of the claim finds that the agent has exited");
  }
});
