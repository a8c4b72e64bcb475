import assert from "node:assert/strict";
import { test } from "node:test";
import { cancelSubtree } from "../../kernel/cancel.ts";
import { aMessage } from "../../store/testing/sample.ts";
import { cutTurn, openEngine, settledTurn } from "../testing/engine.ts";
import { breakWrites } from "../testing/fake-daemon.ts";
import type { Family } from "../../kernel/testing/family.ts";
import type { SessionRecord, TurnRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";
import { beforeNextWrite } from "../../store/testing/around-writes.ts";
import { adoptLost } from "./recovery.ts";

test("a turn that is cancelled while it is being taken up is settled, not resumed", async (t) => {
  const { family, runner, opened } = await openEngine(t);
  const { id, turn } = await cutTurn(family);
  // The cancel takes the lock after the search for cut turns and before the first of them is recovered.
  beforeNextWrite(family.store, () =>
    family.change(id, async (tx, session) => {
      await cancelSubtree(tx, session, { by: "the user", reason: null, now: 5 });
    }),
  );
  await runner.run();
  assert.equal((await settledTurn(family, turn)).status, "cancelled");
  assert.equal(opened.includes(id), false);
});

test("one turn that cannot be taken up keeps neither the others nor the daemon from starting", async (t) => {
  const { family, runner } = await openEngine(t);
  const turns = [await cutTurn(family), await cutTurn(family)];
  let bug: Error | null = new Error("a bug");
  breakWrites(family.store, () => {
    const error = bug;
    bug = null;
    return error;
  });
  await runner.run();
  assert.equal((await settledTurn(family, turns[1]!.turn)).status, "completed");
  const left = await family.store.read.turns.byId(turns[0]!.turn.id);
  assert.equal(left?.status, "running");
  await adoptLost(runner.runtime);
  assert.equal((await settledTurn(family, turns[0]!.turn)).status, "completed");
});

test("a turn whose past cannot be read is given up and taken up again", async (t) => {
  const { family, runner } = await openEngine(t);
  const { turn } = await cutTurn(family);
  const { page } = family.store.read.entries;
  const broken = Promise.withResolvers<void>();
  Object.assign(family.store.read.entries, {
    async page() {
      Object.assign(family.store.read.entries, { page });
      broken.resolve();
      throw new Error("a bug");
    },
  });
  await runner.run();
  await broken.promise;
  while (runner.runtime.slots.size > 0) await new Promise((resolve) => setImmediate(resolve));
  await adoptLost(runner.runtime);
  const settled = await settledTurn(family, turn);
  assert.deepEqual([settled.status, settled.attempt], ["completed", 3]);
});

const ID = "d-1";

/** Lets an agent store a session, ends the agent's process, and returns the agent's id of the session. */
async function keptConversation(deps: EngineDeps, prompt: string): Promise<string> {
  const opened = await deps.drivers.get("sim")!.open({
    sessionId: "earlier",
    leaseId: "earlier",
    cwd: ".",
    model: null,
    permission: "full",
    tools: null,
    notTools: [],
    servers: null,
    mcp: null,
    load: null,
    startMs: 1_000,
    onUpdate: () => undefined,
    onRequest: async () => ({ kind: "deny" }),
    admitProcess: async (start) => start() !== null,
  });
  assert.ok(opened.ok);
  await opened.handle.prompt(`${prompt}\n\n<!-- message:${ID} -->`);
  await opened.handle.stop(0);
  return opened.handle.agentSessionId;
}

/** Adds a turn that a dead daemon left running, with the prompt `sim> say done`. */
async function cutPrompt(family: Family, session: Partial<SessionRecord>, turn: Partial<TurnRecord>) {
  const cut = await cutTurn(family, session, turn);
  await family.write(async (tx) => {
    const message = { kind: "prompt", senderKind: "person", body: "sim> say done", deliveryId: ID } as const;
    const taken = { status: "taken", carrier: "prompt", turnId: cut.turn.id } as const;
    await tx.messages.add(aMessage(cut.id, { ...message, ...taken }));
  });
  return cut;
}

test("a turn whose agent has lost it is interrupted, says why, and its prompt is not repeated", async (t) => {
  const { family, runner } = await openEngine(t);
  const cut = await cutPrompt(family, { agentSessionId: "a" }, { attemptsBegun: 1 });
  await runner.run();
  const settled = await settledTurn(family, cut.turn);
  assert.equal(settled.status, "interrupted");
  assert.match(settled.error ?? "", /this agent cannot be resumed by itself/);
  assert.equal((await family.inbox(cut.id))[0]?.status, "void");
  const [callback] = await family.callbacks();
  assert.deepEqual(
    [callback?.data?.["outcome"], callback?.data?.["unlanded"]],
    ["interrupted", "sim> say done"],
  );
});

test("a turn without work and without a record at its agent gets its original prompt", async (t) => {
  const { family, runner } = await openEngine(t);
  const cut = await cutPrompt(family, { agentSessionId: "a" }, { attempt: 7 });
  await runner.run();
  const settled = await settledTurn(family, cut.turn);
  assert.deepEqual([settled.status, settled.lastAssistantMessage], ["completed", "done"]);
  assert.equal((await family.inbox(cut.id))[0]?.status, "landed");
});

test("a turn that was resumed twice and has called a tool is interrupted, and messages in its agent's record have landed", async (t) => {
  const { family, deps, runner } = await openEngine(t);
  const agentSessionId = await keptConversation(deps, "sim> run make");
  const cut = await cutPrompt(family, { agentSessionId }, { attemptsBegun: 3 });
  await runner.run();
  const settled = await settledTurn(family, cut.turn);
  assert.equal(settled.status, "interrupted");
  assert.match(settled.error ?? "", /it was resumed twice already/);
  assert.equal((await family.inbox(cut.id))[0]?.status, "landed");
});

test("a turn whose agent has called no tool is resumed after every cut, and its prompt is not sent twice", async (t) => {
  const { family, deps, runner } = await openEngine(t);
  const agentSessionId = await keptConversation(deps, "sim> say done");
  const cut = await cutPrompt(family, { agentSessionId }, { attemptsBegun: 9 });
  await runner.run();
  const settled = await settledTurn(family, cut.turn);
  assert.equal(settled.status, "completed");
  assert.match(settled.lastAssistantMessage ?? "", /Your turn was cut/);
});

test("an attempt counts only where the agent left something of it", async (t) => {
  const { family, deps, runner } = await openEngine(t);
  const agentSessionId = await keptConversation(deps, "sim> say done");
  const idle = await cutPrompt(family, { agentSessionId }, {});
  await runner.run();
  assert.equal((await settledTurn(family, idle.turn)).attemptsBegun, 0);
  const busy = await cutPrompt(family, { agentSessionId }, {});
  const entry = { turnId: busy.turn.id, author: "agent", kind: "text", body: { text: "hm" } } as const;
  await family.write(async (tx) => {
    await tx.entries.append(busy.id, [{ ...entry, isSubagent: false, at: 1 }]);
  });
  await runner.startOver(async () => undefined);
  assert.equal((await settledTurn(family, busy.turn)).attemptsBegun, 1);
});

test("a session that is ready is claimed only when all that was cut has been taken up", async (t) => {
  const { family, runner } = await openEngine(t);
  const { turn } = await cutTurn(family);
  const reads: string[] = [];
  const { runningOn } = family.store.read.turns;
  const { ready } = family.store.read.sessions;
  Object.assign(family.store.read.turns, {
    async runningOn(node: string) {
      // A wake arrives while the daemon starts.
      await family.write(async (tx) => tx.wake(family.rootId));
      reads.push("cut");
      return runningOn(node);
    },
  });
  Object.assign(family.store.read.sessions, {
    ready(node: string, limit: number) {
      reads.push("ready");
      return ready(node, limit);
    },
  });
  await runner.run();
  await settledTurn(family, turn);
  assert.equal(reads[0], "cut");
});
