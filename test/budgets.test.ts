import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Refusal, Session } from "../src/contract/index.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, childNamed, quiet, running, toolReplies } from "./support/family.ts";
import { gate, openGate, script, spawnStep } from "./support/script.ts";
import { openSpy, SPY_YAML } from "./support/spy.ts";

const YAML = JSON.stringify({
  ...(JSON.parse(SPY_YAML) as object),
  prices: { "cheap-1": { input: 1, output: 2 } },
});

describe("a budget", () => {
  const home = new TestHome({ yaml: YAML });
  let client: Client;
  before(async () => {
    client = await home.start();
  });
  after(() => home.close());

  test("a child over its budget is stopped in its turn, and its parent is told with the numbers", async () => {
    const child = {
      name: "spender",
      prompt: script("usage 10 10 0.3", "say half", "usage 10 10 0.3", "hang"),
      limits: { usd: 0.5 },
    };
    const prompt = script(spawnStep(child));
    const { session: root } = await client.create({ cwd: home.work, prompt });
    await allQuiet(client, root.id);
    const [spender] = (await client.children({ id: root.id })).sessions;
    assert.deepEqual(
      [spender!.outcome, spender!.outcomeReason],
      ["failed", "it reached its limit of $0.50 (spent $0.60)"],
    );
    assert.equal(Number(spender!.usage.usd!.toFixed(6)), 0.6);
    const [callback] = await callbacksTo(client, root.id);
    assert.match(
      callback!.text,
      /"spender" .* FAILED after .*: it reached its limit of \$0\.50 \(spent \$0\.60\)\./,
    );
    assert.match(callback!.text, /Tell the user; do not spawn it again\./);
    assert.match(callback!.text, /\nhalf\n/);
    const { triggers } = await client.triggers({ id: spender!.id });
    const error = triggers.find((each) => each.type === "session_error");
    assert.deepEqual(error?.payload["kind"], "budget");
    assert.equal((await callbacksTo(client, root.id)).length, 1);
  });

  test("a turn's reservation grows as needed: only the budget itself ends the turn", async () => {
    const { session } = await client.create({
      cwd: home.work,
      limits: { usd: 1, tokens: 100_000 },
      prompt: script("usage 9000 0 0.3", "usage 9000 0 0.3", "usage 9000 0 0.3", gate("hold"), "say done"),
    });
    const turn = await eventually("it holds what it needs", async () => {
      const [first] = (await client.turns({ id: session.id })).turns;
      return (first?.reserved?.usd ?? 0) > 0.9 ? first : null;
    });
    assert.ok(turn.reserved!.usd! <= 1 && turn.reserved!.tokens! > 27_000);
    openGate(home.work, "hold");
    assert.equal((await quiet(client, session.id)).outcome, "completed");
    const [settled] = (await client.turns({ id: session.id })).turns;
    assert.equal(settled!.reserved, null);
    assert.equal(settled!.usage.estimated, undefined);
  });

  test("a limit of nothing or less is refused with what is wrong and what to do", async () => {
    for (const limits of [{ minutes: 0 }, { usd: 0 }, { tokens: -5 }, { turns: 0 }]) {
      const [unit] = Object.keys(limits);
      await assert.rejects(client.create({ cwd: home.work, limits, prompt: "x" }), (refusal: Refusal) => {
        assert.equal(refusal.code, "invalid_input");
        assert.match(refusal.message, new RegExp(`limits.${unit}.*must be more than 0\\.`));
        return true;
      });
    }
  });

  test("children spend from their ancestors' budgets, and a freed reservation goes to a waiting session", async () => {
    const { session: root } = await client.create({
      cwd: home.work,
      limits: { usd: 1 },
      prompt: script("say root"),
    });
    await quiet(client, root.id);
    const worker = (name: string, ...lines: string[]) =>
      client.spawn({ id: root.id, name, prompt: script(...lines) });
    await worker("first", "usage 0 0 0.6", gate("first"));
    await held(client, root.id, "first", 0.6);
    await worker("second", "usage 0 0 0.2", "usage 0 0 0.16", "hang");
    const second = await quiet(client, (await childNamed(client, root.id, "second")).id);
    assert.equal(second.outcome, "failed");
    assert.match(
      second.outcomeReason ?? "",
      /^it reached its limit of \$1\.00 \(spent \$0\.36 with its family; \$0\.66 reserved by other turns\)$/,
    );
    await worker("third", "say went on");
    const third = await childNamed(client, root.id, "third");
    openGate(home.work, "first");
    await quiet(client, third.id);
    const sessions = await allQuiet(client, root.id);
    const { session } = await client.get({ id: root.id });
    assert.equal(Number(session.treeUsage.usd!.toFixed(6)), 0.96);
    assert.deepEqual(sessions.map((each) => each.outcome).toSorted(), [
      "completed",
      "completed",
      "completed",
      "failed",
    ]);
    await worker("fourth", "usage 0 0 0.04", "say all of it");
    // When the callback of `fourth` arrives, no budget is left, so the root waits for the person.
    await waitsOn(client, root.id, "budget");
    await assert.rejects(worker("late", "say never"), (error: Refusal) => {
      assert.deepEqual([error.code, error.details["unit"], error.details["left"]], ["over_budget", "usd", 0]);
      assert.match(error.message, /nothing is left of your budget\..*do not spawn again/);
      return true;
    });
  });

  test("a session without budget waits, needs the person, and continues when the budget is raised", async () => {
    const { session } = await client.create({
      cwd: home.work,
      limits: { usd: 0.5 },
      prompt: script("usage 0 0 0.5"),
    });
    await quiet(client, session.id);
    await client.prompt({ id: session.id, prompt: script("say more") });
    const waiting = await waitsOn(client, session.id, "budget");
    assert.equal(waiting.waiting?.until, undefined);
    assert.equal(waiting.evidence.reason, "it reached its limit of $0.50 (spent $0.50)");
    await client.update({ id: session.id, limits: { usd: 0.6 } });
    const after = await quiet(client, session.id);
    assert.deepEqual([after.outcome, after.effective.limits["usd"]], ["completed", 0.6]);
    await client.prompt({ id: session.id, prompt: script("usage 0 0 5", "say once more") });
    await quiet(client, session.id);
    await client.prompt({ id: session.id, prompt: script("say free") });
    await waitsOn(client, session.id, "budget");
    await client.update({ id: session.id, limits: { usd: null } });
    assert.deepEqual((await quiet(client, session.id)).effective.limits, {});
  });

  test("a child that waits for its budget wakes the wait of every session above it", async () => {
    // Each turn reserves ten thousand tokens: two turns reserve the whole budget.
    const limits = { tokens: 20_000 };
    const spy = await openSpy(home, client, { name: "above", limits, prompt: script(gate("end")) });
    const inner = spawnStep({ name: "inner", prompt: script("say at last") });
    const waiting = `tool wait_session {"timeoutMs":40000}`;
    await spy.call("spawn_session", { name: "outer", agent: "sim", prompt: script(inner, waiting, "hang") });
    const outer = await childNamed(client, spy.id, "outer");
    const reply = await spy.call("wait_session", { ids: [outer.id], timeoutMs: 40_000 });
    const poor = await childNamed(client, outer.id, "inner");
    assert.equal(reply.isError, false);
    assert.deepEqual(reply.head["needs_you"], [poor.shortId]);
    assert.match(
      reply.text,
      /waits for its budget: it reached its limit of 20k tokens \(used 0 with its family; 20k reserved by other turns\)\.\n/,
    );
    assert.match(reply.text, /Tell the user; do not spawn it again\./);
    assert.doesNotMatch(reply.text, /respond_to_trigger/);
    const [own] = await eventually("its parent is told too", async () => {
      const replies = await toolReplies(client, outer.id, "wait_session");
      return replies.length > 0 ? replies : null;
    });
    assert.deepEqual(own!.head["needs_you"], [poor.shortId]);
    const again = await spy.call("wait_session", { cursor: reply.head["cursor"], timeoutMs: 0 });
    assert.deepEqual(again.head["needs_you"], []);
    openGate(spy.folder, "end");
    assert.equal((await quiet(client, poor.id)).outcome, "completed");
    await spy.close();
    await client.cancel({ id: spy.id });
  });

  test("a killed turn books its reservation, marked as estimated", async () => {
    const { session } = await client.create({
      cwd: home.work,
      limits: { usd: 1, tokens: 40_000 },
      prompt: script("usage 100 0 0.01", "crash"),
    });
    const after = await quiet(client, session.id);
    assert.equal(after.outcome, "failed");
    assert.deepEqual([after.usage.usd, after.usage.inputTokens, after.usage.estimated], [0.05, 10_000, true]);
  });

  test("minutes end a turn, and the rounds below it with it", async () => {
    const { session: root } = await client.create({
      cwd: home.work,
      limits: { minutes: 0.05 },
      prompt: script(spawnStep({ name: "slow", prompt: script("hang") }), "hang"),
    });
    const slow = await childNamed(client, root.id, "slow");
    assert.ok(slow.effective.limits["minutes"]! <= 0.05);
    const sessions = await allQuiet(client, root.id);
    // Checks only the first turn of each session. If a callback arrived after the parent had failed, it
    // opened another round with a later turn.
    for (const { id } of sessions) {
      const first = (await client.turns({ id })).turns.at(-1)!;
      assert.equal(first.status, "failed");
      assert.match(first.error ?? "", /^it reached its limit of [\d.]+ s$/);
    }
  });

  test("minutes do not run while a person is asked", async () => {
    const { session } = await client.create({
      cwd: home.work,
      limits: { minutes: 0.05 },
      prompt: script("ask which | a | b", "say thanks"),
    });
    const [question] = await eventually("it asks", async () => {
      const { triggers } = await client.listTriggers({ for: "person" });
      const own = triggers.filter((each) => each.sessionId === session.id);
      return own.length > 0 ? own : null;
    });
    const opened = Date.now();
    await eventually("its minutes would be over", async () => Date.now() - opened > 4_000);
    assert.equal((await client.get({ id: session.id })).session.status, "waiting");
    await client.respond({ id: question!.id, response: "a" });
    assert.equal((await quiet(client, session.id)).outcome, "completed");
  });

  test("a budget that cannot be metered is refused, and a price makes it meterable", async () => {
    const ask = { cwd: home.work, agent: "spy", prompt: script("say x"), limits: { usd: 1 } };
    await assert.rejects(client.create(ask), (error: Refusal) => {
      assert.equal(error.code, "cannot_meter");
      assert.match(error.message, /"spy" does not report what it costs/);
      return true;
    });
    const { session } = await client.create({ ...ask, model: "cheap-1" });
    assert.equal((await quiet(client, session.id)).outcome, "completed");
    const { session: parent } = await client.create({ ...ask, agent: "sim", prompt: script("say root") });
    await assert.rejects(client.spawn({ id: parent.id, agent: "spy", prompt: "x" }), {
      code: "cannot_meter",
    });
    const { metering } = await client.spawn({ id: parent.id, agent: "spy", model: "cheap-1", prompt: "x" });
    assert.equal(metering, "turn");
    assert.equal((await client.spawn({ id: parent.id, prompt: "x" })).metering, "call");
  });

  test("a child may not ask for more than is left, in any unit", async () => {
    const limits = { usd: 1, tokens: 1_000, turns: 4, minutes: 10 };
    const prompt = script("usage 300 0 0.25");
    const { session: root } = await client.create({ cwd: home.work, limits, prompt });
    await quiet(client, root.id);
    const asks = [
      [{ usd: 0.8 }, /^\$0\.80 was asked for and \$0\.75 is left of your budget\. Ask for less/],
      [{ tokens: 701 }, /^701 tokens was asked for and 700 tokens is left/],
      [{ turns: 4 }, /^4 turns was asked for and 3 turns is left/],
      [{ minutes: 11 }, /^11 min was asked for and 10 min is left/],
    ] as const;
    for (const [asked, words] of asks) {
      await assert.rejects(client.spawn({ id: root.id, prompt: "x", limits: asked }), (error: Refusal) => {
        assert.equal(error.code, "over_budget");
        assert.match(error.message, words);
        return true;
      });
    }
    const within = { usd: 0.75, tokens: 700, turns: 3, minutes: 1 };
    const { effective } = await client.spawn({ id: root.id, prompt: "x", limits: within });
    assert.deepEqual(effective.limits, within);
    const plain = await client.spawn({ id: root.id, prompt: "y" });
    for (const [unit, limit] of Object.entries(limits)) assert.ok(plain.effective.limits[unit]! <= limit);
    await client.cancel({ id: root.id });
  });
});

describe("after the daemon was killed", () => {
  test("a turn keeps its reservation, and books it when its usage is unknown", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const ask = {
        cwd: home.work,
        limits: { usd: 1 },
        prompt: script("usage 0 0 0.2", gate("on"), "say ok"),
      };
      const { session } = await client.create(ask);
      const reserved = await eventually("it holds what it used", async () => {
        const [turn] = (await client.turns({ id: session.id })).turns;
        return (turn?.reserved?.usd ?? 0) >= 0.2 ? turn!.reserved!.usd : null;
      });
      await home.kill();
      const next = await home.start();
      const [turn] = (await next.turns({ id: session.id })).turns;
      assert.equal(turn!.reserved?.usd, reserved);
      openGate(home.work, "on");
      const after = await quiet(next, session.id);
      assert.deepEqual(
        [after.outcome, after.usage.usd, after.usage.estimated],
        ["completed", reserved, true],
      );
    } finally {
      await home.close();
    }
  });

  test("minutes have not run while it was down", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const ask = { cwd: home.work, limits: { minutes: 0.1 }, prompt: script("hang") };
      const { session } = await client.create(ask);
      await running(client, session.id);
      await home.kill();
      const killedAt = Date.now();
      await eventually("its minutes would be over", async () => Date.now() - killedAt > 6_500);
      const next = await home.start();
      const restartedAt = Date.now();
      const after = await quiet(next, session.id);
      assert.match(after.outcomeReason ?? "", /^it reached its limit of 6 s$/);
      const [turn] = (await next.turns({ id: session.id })).turns;
      assert.ok(turn!.settledAt! - restartedAt > 1_000, "it had its time left");
    } finally {
      await home.close();
    }
  });
});

async function held(client: Client, parentId: string, name: string, usd: number): Promise<void> {
  const { id } = await childNamed(client, parentId, name);
  await running(client, id);
  await eventually(`${name} holds ${usd}`, async () => {
    const [turn] = (await client.turns({ id })).turns;
    return (turn?.reserved?.usd ?? 0) >= usd;
  });
}

async function waitsOn(client: Client, id: string, on: string): Promise<Session> {
  return eventually(`${id} waits on ${on}`, async () => {
    const { session } = await client.get({ id });
    return session.waiting?.on === on ? session : null;
  });
}
