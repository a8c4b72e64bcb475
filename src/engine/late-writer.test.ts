import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { AgentHandle, AgentRequest } from "../drivers/port.ts";
import { closeTrigger } from "../kernel/trigger.ts";
import type { SessionRecord, Tx, TurnRecord } from "../store/port/store.ts";
import { aLease, aMessage, aTrigger, aTurn } from "../store/testing/sample.ts";
import { type Watched, watchWrite } from "../store/testing/watch-write.ts";
import { giveBackLease, startAgent } from "./agent/start.ts";
import { endBackground } from "./background.ts";
import { recover } from "./recovery/recovery.ts";
import { answerPlan } from "./request/plan-request.ts";
import { answerRequest } from "./request/requests.ts";
import { resumeParked, stopOvertime } from "./round-clock.ts";
import { SilenceWatch } from "./silence.ts";
import { openEngine } from "./testing/engine.ts";
import { aLease as leaseFor, aRunningSlot, type Running } from "./testing/slot.ts";
import { autonomous } from "./turn/autonomous.ts";
import { claim } from "./turn/claim.ts";
import { settle } from "./turn/settle.ts";
import { steerQueued } from "./turn/steer.ts";
import { meter } from "./usage/reservation.ts";
import { leaseRow } from "./agent/process-lease.ts";

const FENCE = 3;
const PLAN: AgentRequest = { kind: "plan", title: "a plan", text: "- one\n- two" };
const TIMED = { limits: { minutes: 1 } };
const USAGE = { inputTokens: 50, cachedTokens: 0, outputTokens: 50, usd: null };

interface World {
  readonly engine: Awaited<ReturnType<typeof openEngine>>;
  readonly session: SessionRecord;
  /** Writes directly to the store. Such a write is never the one under test. */
  readonly write: <T>(work: (tx: Tx) => Promise<T>) => Promise<T>;
  readonly running: (turn?: Partial<TurnRecord>, handle?: Partial<AgentHandle>) => Promise<Running>;
}

/** One kind of write that the engine makes for an agent process. */
interface Writer {
  readonly session?: Partial<SessionRecord>;
  /** Which of the writes made by `run` is the one under test, counted from 1. */
  readonly nth?: number;
  readonly run: (world: World) => Promise<unknown>;
}

const WRITERS: Record<string, Writer> = {
  "claims a turn": {
    async run({ engine, session, write }) {
      await write((tx) => tx.messages.add(aMessage(session.id)));
      await claim(engine.deps, session, null);
    },
  },
  "claims another turn for a process that runs": {
    async run({ engine, session, write }) {
      await write((tx) => tx.messages.add(aMessage(session.id)));
      await claim(engine.deps, session, leaseFor(session));
    },
  },
  "starts a process": {
    run: ({ engine: { deps }, session }) => rowOf(deps, session).admitProcess(() => PROCESS),
  },
  "remembers processes of an agent": {
    async run({ engine: { deps }, session, write }) {
      const row = { id: leaseFor(session).id, fence: FENCE, pid: 1 };
      await write((tx) => tx.leases.put(aLease(session.id, row)));
      rowOf(deps, session).onUnmarked([{ ...PROCESS, boot: null }]);
    },
  },
  "stores the agent's own session id": {
    run: ({ engine: { deps }, session }) =>
      startAgent(deps, session, { lease: leaseFor(session), ...DEAF, load: null }),
  },
  "gives a lease back": {
    async run({ engine: { deps }, session, write }) {
      await write((tx) => tx.leases.put(aLease(session.id, { fence: FENCE })));
      await giveBackLease(deps, { session, lease: leaseFor(session), left: [], hasRun: true });
    },
  },
  "appends entries": {
    async run({ running }) {
      const { recorder } = await running();
      recorder.record({ kind: "notice", text: "seen" });
      await recorder.written();
    },
  },
  "settles a turn": {
    async run({ engine: { deps }, running }) {
      const { recorder } = await running();
      const end = { reason: null, usage: null, background: false } as const;
      await settle(deps, recorder, {
        end: { ...end, stopReason: "end_turn", reach: "answered" },
        isWanted: () => true,
      });
    },
  },
  "raises a reservation": {
    async run({ engine: { runner }, running }) {
      const { slot, recorder } = await running({ reservedTokens: 1 });
      recorder.metered(USAGE);
      meter(runner.runtime, slot);
    },
  },
  "opens a turn for what an agent does by itself": {
    async run({ engine: { runner }, running, write }) {
      const { slot, recorder } = await running();
      const over = { status: "completed", settledAt: 1 } as const;
      await write((tx) => tx.turns.patchRunning(recorder.turn.id, FENCE, over));
      slot.settled(recorder, false);
      autonomous(runner.runtime, slot, { kind: "text", text: "by itself" });
      await slot.task;
    },
  },
  "takes a message to steer": { run: (world) => steer(world, "injected") },
  "notes a steered message": { nth: 2, run: (world) => steer(world, "injected") },
  "returns a refused message to the inbox": { nth: 2, run: (world) => steer(world, "refused") },
  "notes a message that cannot be steered": {
    run(world) {
      const { runtime } = world.engine.runner;
      runtime.agents = new Map(
        [...runtime.agents].map(([name, agent]) => [name, { ...agent, steer: "none" }]),
      );
      return steer(world, "refused");
    },
  },
  "says that an agent is silent": { run: (world) => beSilent(world) },
  "withdraws what it said of a silence": { nth: 2, run: (world) => beSilent(world) },
  "raises a request of the agent": { run: (world) => request(world) },
  "says that a turn waits for an answer": { nth: 2, run: (world) => request(world) },
  "says that a turn waits no longer": { nth: 3, run: (world) => request(world) },
  "says that an answer was heard": { nth: 4, run: (world) => request(world) },
  "admits what is to be changed in a plan": {
    async run({ engine: { runner }, session, running }) {
      const { slot } = await running();
      const by = { by: "the user", callerId: null, response: null, answers: null, at: 1 };
      const answer = { ...by, action: "edit" };
      const trigger = { ...aTrigger(session.id, { type: "plan_review", answer }), rootId: session.rootId };
      await answerPlan(runner.runtime, slot, trigger);
    },
  },
  "takes over a turn that was cut": {
    async run({ engine: { runner }, running }) {
      await running();
      runner.runtime.slots.clear();
      await recover(runner.runtime);
    },
  },
  "reads back what reached a resumed turn": {
    session: { agentSessionId: "sim-1" },
    nth: 4,
    async run({ engine: { runner, deps }, session, running, write }) {
      await startAgent(deps, session, { lease: leaseFor(session), ...DEAF, load: null });
      const { recorder } = await running();
      runner.runtime.slots.clear();
      const taken = { status: "taken", carrier: "prompt", turnId: recorder.turn.id } as const;
      await write((tx) => tx.messages.add(aMessage(session.id, taken)));
      await recover(runner.runtime);
    },
  },
  "ends background work": {
    session: { backgroundUntil: 5 },
    run: ({ engine: { deps }, session }) => endBackground(deps, session),
  },
  "resumes a parked session": {
    session: { parked: { on: "limit", since: 1, until: 2, reason: "a limit" } },
    run: ({ engine: { deps } }) => resumeParked(deps, 5),
  },
  "fails a round whose minutes are over": {
    async run({ engine: { runner }, session, write }) {
      const effective = { ...session.effective, ...TIMED };
      await write((tx) => tx.sessions.patch(session.id, { effective, roundOpenedAt: 1 }));
      await stopOvertime(runner.runtime, Date.now());
    },
  },
};

for (const [name, writer] of Object.entries(WRITERS)) {
  test(`a late writer changes nothing where it ${name}`, async (t) => {
    const current = await watch(t, writer, false);
    assert.notDeepEqual(current.after, current.before, "with its own fence it writes");
    const late = await watch(t, writer, true);
    assert.deepEqual(late.after, late.before);
  });
}

const PROCESS = { pid: 1, startTime: 1, command: "agent" };
const DEAF = {
  isWanted: () => true,
  onUpdate: () => undefined,
  onRequest: async () => ({ kind: "deny" }) as const,
};

function rowOf(deps: World["engine"]["deps"], session: SessionRecord) {
  return leaseRow(deps, { session, lease: leaseFor(session), isWanted: () => true });
}

/** Returns the tree before and after the write under test. */
async function watch(t: TestContext, writer: Writer, isLate: boolean): Promise<Watched> {
  const engine = await openEngine(t);
  const { family } = engine;
  const { rootId, store } = family;
  const session = await family.add(rootId, { fence: FENCE, roundOpenedAt: 1, ...writer.session });
  const { write } = store;
  const world: World = {
    engine,
    session,
    write: (work) => write(rootId, work),
    async running(turn = {}, handle = {}) {
      const row = aTurn(session.id, { fence: FENCE, startedAt: Date.now(), ...turn });
      const record = await write(rootId, (tx) => tx.turns.add(row));
      return aRunningSlot(engine.runner.runtime, { session, turn: record }, handle);
    },
  };
  const seen = watchWrite(store, { rootId, sessionId: session.id, nth: writer.nth ?? 1, isLate });
  await writer.run(world);
  return seen;
}

async function steer({ engine, session, running, write }: World, result: "injected" | "refused") {
  await write((tx) => tx.messages.add(aMessage(session.id, { delivery: "steer" })));
  const { slot } = await running({}, { steer: async () => result });
  await steerQueued(engine.runner.runtime, slot);
}

/**
 * Makes the agent announce a retry, so that the agent is reported as silent at once. Its next update withdraws
 * the report of silence.
 */
async function beSilent({ engine: { runner, deps }, running }: World): Promise<void> {
  Object.assign(deps.config, { silenceMs: 0 });
  const { recorder } = await running();
  const silence = new SilenceWatch(runner.runtime);
  await silence.beat();
  recorder.retrying = { kind: "retrying", status: 529, attempt: 1, attemptsMax: null };
  await silence.beat();
  recorder.recorded += 1;
  await silence.beat();
}

async function request({ engine: { runner, deps }, session, running, write }: World): Promise<void> {
  const { slot } = await running();
  const asked = answerRequest(runner.runtime, slot, PLAN);
  const off = deps.store.onCommit(() => {
    void write(async (tx) => {
      for (const trigger of await tx.triggers.open({ sessionId: session.id }))
        await closeTrigger(tx, trigger, { status: "withdrawn", answer: null, now: 1 });
    });
  });
  await asked;
  off();
}
