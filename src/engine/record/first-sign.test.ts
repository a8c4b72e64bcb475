import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { AgentRequest, AgentUpdate } from "../../drivers/port.ts";
import { aroundWrites } from "../../store/testing/around-writes.ts";
import { answerRequest } from "../request/requests.ts";
import { openEngine } from "../testing/engine.ts";
import { aRunningSlot } from "../testing/slot.ts";

const CALL: AgentUpdate = { kind: "toolCall", callId: "1", tool: "Bash", title: "pay", input: {} };
const WORD: AgentUpdate = { kind: "fragment", what: "thought", text: "so" };
const USAGE: AgentUpdate = {
  kind: "usage",
  usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1, usd: null },
};

/** Returns a running turn whose prompt was sent, and whose timers never fire. */
async function prompted(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { family, runner } = await openEngine(t);
  const session = await family.add(family.rootId, { fence: 1 });
  const turn = await family.startTurn(session.id, { attempt: 3 });
  const { slot, recorder } = await aRunningSlot(runner.runtime, { session, turn });
  recorder.isPrompted = true;
  let writes = 0;
  aroundWrites(family.store, (_, work, write) => {
    writes += 1;
    return write(work);
  });
  const reportedAttempt = async (): Promise<number> =>
    (await family.store.read.turns.byId(turn.id))!.reportedAttempt;
  const entries = () => family.store.read.entries.page(session.id, { limit: 10 });
  return { family, runtime: runner.runtime, slot, recorder, reportedAttempt, entries, writes: () => writes };
}

test("the first sign of work in an attempt is stored at once, with the call that it is", async (t) => {
  const { recorder, reportedAttempt, entries } = await prompted(t);
  recorder.record(CALL);
  await recorder.begun();
  assert.equal(await reportedAttempt(), 3);
  assert.deepEqual(
    (await entries()).map(({ kind }) => kind),
    ["toolCall"],
  );
});

test("the first word is a sign of work, before a draft of it is due, and further words cost no write", async (t) => {
  const { family, slot, recorder, reportedAttempt, writes } = await prompted(t);
  for (let words = 0; words < 20; words += 1) {
    recorder.record(WORD);
    await recorder.begun();
  }
  assert.deepEqual([await reportedAttempt(), writes()], [3, 1]);
  assert.equal(await family.store.read.drafts.ofSession(slot.session.id), null);
});

test("neither usage nor what came before the prompt is a sign of work", async (t) => {
  const { recorder, reportedAttempt, writes } = await prompted(t);
  recorder.record(USAGE);
  recorder.isPrompted = false;
  recorder.record(CALL);
  await recorder.begun();
  assert.deepEqual([recorder.hasBegun, await reportedAttempt(), writes()], [false, 0, 0]);
});

test("a request of an agent is answered once it is stored that the agent has begun", async (t) => {
  const { runtime, slot, reportedAttempt } = await prompted(t);
  const request: AgentRequest = {
    kind: "permission",
    tool: "Bash",
    title: "pay",
    command: "pay",
    paths: [],
    risk: "command",
    options: [],
    ours: false,
  };
  slot.session.effective.permission = "full";
  assert.deepEqual(await answerRequest(runtime, slot, request), { kind: "allow" });
  assert.equal(await reportedAttempt(), 3);
});
