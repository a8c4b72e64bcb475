import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { SpawnOutput, WaitChildrenOutput } from "../src/contract/index.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants, childNamed, quiet, toolReplies } from "./support/family.ts";
import { gate, openGate, script, spawnStep, tool } from "./support/script.ts";
import { openSpy, Spy, SPY_YAML } from "./support/spy.ts";

describe("waits", { concurrency: 4 }, () => {
  const home = new TestHome({ yaml: SPY_YAML, env: { KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1000" } });
  let client: Client;
  before(async () => {
    client = await home.start();
  });
  after(() => home.close());

  /** Starts a root that stays in its turn until the gate `end` is opened. */
  const parent = (name: string): Promise<Spy> =>
    openSpy(home, client, { name, prompt: script(gate("end"), "say the turn ends") });
  const spawn = async (spy: Spy, name: string, prompt: string): Promise<SpawnOutput["session"]> => {
    const { session } = await spy.ask<SpawnOutput>("spawn_session", { name, prompt, agent: "sim" });
    return session;
  };
  const end = async (spy: Spy): Promise<void> => {
    openGate(spy.folder, "end");
    await allQuiet(client, spy.id);
    await spy.close();
    await checkInvariants(client, spy.id);
  };

  test("an agent that waits for one child gets its result, and no callback comes after", async () => {
    const prompt = script(
      spawnStep({ name: "one", prompt: script("sleep 100", "say the answer is 42") }, "c"),
      tool("wait_session", { ids: ["${c.session_id}"] }),
      "say done",
    );
    const { session: root } = await client.create({ cwd: home.work, prompt });
    await allQuiet(client, root.id);
    const [reply] = await toolReplies(client, root.id, "wait_session");
    const { sessions } = await client.children({ id: root.id });
    assert.deepEqual(reply!.head["done"], [sessions[0]!.shortId]);
    assert.equal(reply!.head["timed_out"], false);
    assert.match(reply!.text, /<child-output id="\w+">\nthe answer is 42\n<\/child-output id="\w+">/);
    assert.match(reply!.text, /This result will not be sent to you again\./);
    assert.deepEqual(await callbacksTo(client, root.id), []);
    const { turns } = await client.turns({ id: root.id });
    assert.equal(turns.length, 1);
    const { messages } = await client.inbox({ id: root.id, all: true });
    const callback = messages.find((message) => message.kind === "callback")!;
    assert.deepEqual([callback.status, callback.carrier], ["landed", "tool"]);
    await checkInvariants(client, root.id);
  });

  test("a wait for any, a number or all children returns after one, that number or all of them have ended", async () => {
    const spy = await parent("how-many");
    await spawn(spy, "first", script("say first result"));
    await spawn(spy, "second", script(gate("second"), "say second result"));
    await spawn(spy, "third", script("hang"));
    const any = await spy.ask<WaitChildrenOutput>("wait_session", { until: "any" });
    assert.deepEqual(
      any.done.map((each) => each.name),
      ["first"],
    );
    assert.deepEqual(any.working.map((each) => each.name).toSorted(), ["second", "third"]);
    assert.equal(any.timedOut, false);
    openGate(spy.folder, "second");
    const ids = ["first", "second", "third"];
    const two = await spy.ask<WaitChildrenOutput>("wait_session", { ids, until: 2 });
    assert.deepEqual(two.done.map((each) => each.name).toSorted(), ["first", "second"]);
    assert.equal(two.done.find((each) => each.name === "first")!.delivered, true);
    assert.equal(two.done.find((each) => each.name === "second")!.delivered, false);
    const all = spy.ask<WaitChildrenOutput>("wait_session", { ids, until: "all" });
    const third = await childNamed(client, spy.id, "third");
    await client.cancel({ id: third.id, reason: "wrong branch" });
    const { done, working } = await all;
    assert.deepEqual(
      done.map((each) => [each.name, each.outcome]),
      [
        ["first", "completed"],
        ["second", "completed"],
        ["third", "cancelled"],
      ],
    );
    assert.match(done[2]!.block, /was CANCELLED by the user after .*: "wrong branch"\./);
    assert.deepEqual(working, []);
    await end(spy);
  });

  test("a time that is over is a normal reply, and a short one is raised and says so", async () => {
    const spy = await parent("time-out");
    const child = await spawn(spy, "slow", script("hang"));
    const reply = await spy.call("wait_session", { timeoutMs: 30 });
    assert.equal(reply.isError, false);
    assert.equal(reply.head["timed_out"], true);
    assert.deepEqual(reply.head["working"], [child.shortId]);
    assert.match(reply.text, /timeoutMs 30 was raised to 10000: it is in milliseconds\./);
    assert.match(reply.text, /Nothing new in .*, which is normal\./);
    await client.cancel({ id: child.id });
    await end(spy);
  });

  test("a time of zero looks without waiting, and its cursor waits for the same children", async () => {
    const spy = await parent("look");
    const child = await spawn(spy, "gated", script(gate("gated"), "say through the gate"));
    const look = await spy.call("wait_session", { timeoutMs: 0 });
    assert.deepEqual([look.isError, look.head["timed_out"]], [false, true]);
    assert.deepEqual([look.head["done"], look.head["working"]], [[], [child.shortId]]);
    assert.match(look.text, /Nothing new, which is normal\./);
    const { cursor } = look.head;
    const waiting = spy.call("wait_session", { cursor });
    await spawn(spy, "later", script("hang"));
    openGate(spy.folder, "gated");
    const found = await waiting;
    assert.deepEqual(found.head["done"], [child.shortId]);
    assert.deepEqual(found.head["working"], [], "a child spawned later is not what the cursor was for");
    const bad = await spy.call("wait_session", { cursor: "nonsense" });
    assert.match(
      bad.text,
      /^invalid_input: "nonsense" is not a cursor that wait_session gave\. Leave it out/,
    );
    await client.cancel({ id: (await childNamed(client, spy.id, "later")).id });
    const none = await spy.call("wait_session", { timeoutMs: 0, ids: [] });
    assert.match(none.text, /You have no open children\./);
    await end(spy);
  });

  test("the source's form gives the last message itself, or its errors word for word", async () => {
    const spy = await parent("source");
    const slow = await spawn(spy, "slow", script("say not this", gate("slow"), "say the last message"));
    for (const ms of [200, 0, -5]) {
      const late = await spy.call("wait_session", { session_id: slow.id, timeout_ms: ms });
      assert.equal(late.isError, true);
      assert.equal(late.text, `did_not_complete: session ${slow.id} did not complete within ${ms}ms`);
    }
    openGate(spy.folder, "slow");
    const result = await spy.call("wait_session", { session_id: slow.shortId, timeout_ms: 30_000 });
    assert.equal(result.isError, false);
    assert.match(result.text, /completed\. Its report follows as data/);
    assert.match(result.text, /<child-output id="(\w+)">\nthe last message\n<\/child-output id="\1">/);
    const again = await spy.call("wait_session", { session_id: slow.shortId, timeout_ms: 0 });
    assert.match(again.text, /the last message/);
    assert.match(again.text, /You have read this before\./);
    const silent = await spawn(spy, "silent", script("think nothing to say"));
    const nothing = await spy.call("wait_session", { session_id: silent.id, timeout_ms: 30_000 });
    assert.match(nothing.text, /\[Kinfold\] Child "silent" .*completed without an assistant message\./);
    const failing = await spawn(spy, "failing", script("fail the disk is on fire"));
    const failed = await spy.call("wait_session", { session_id: failing.id, timeout_ms: 30_000 });
    assert.equal(failed.isError, true);
    assert.match(failed.text, /^child_failed: the agent reported: "the disk is on fire"/);
    const both = await spy.call("wait_session", { session_id: slow.id, ids: [slow.id] });
    assert.equal(both.text, "invalid_input: Give ids or session_id, not both.");
    await end(spy);
  });

  test("a child that failed, and one that said nothing, are results as well", async () => {
    const prompt = script(
      spawnStep({ name: "breaks", prompt: script("say half way", "fail no more memory") }, "a"),
      spawnStep({ name: "mute", prompt: script("think hm") }, "b"),
      tool("wait_session", { ids: ["${a.session_id}", "${b.session_id}"], until: "all" }),
      tool("wait_session", { session_id: "${a.session_id}", timeout_ms: 0 }),
      "say done",
    );
    const { session: root } = await client.create({ cwd: home.work, prompt });
    await allQuiet(client, root.id);
    const [reply, source] = await toolReplies(client, root.id, "wait_session");
    assert.equal((reply!.head["done"] as string[]).length, 2);
    assert.match(
      reply!.text,
      /Child "breaks" \(.*\) FAILED after .*: the agent reported: "no more memory"\./,
    );
    assert.match(reply!.text, /half way/);
    assert.match(reply!.text, /Child "mute" \(.*\) completed after/);
    assert.match(reply!.text, /It left no report\./);
    assert.equal(source!.isError, true);
    assert.match(source!.text, /^child_failed: the agent reported: "no more memory"/);
    assert.deepEqual(await callbacksTo(client, root.id), []);
    await checkInvariants(client, root.id);
  });

  test("the source's error of a failed child is its callback: none comes after", async () => {
    const prompt = script(
      spawnStep({ name: "breaks", prompt: script("fail told as an error") }, "c"),
      tool("wait_session", { session_id: "${c.session_id}", timeout_ms: 30_000 }),
      "say done",
    );
    const { session: root } = await client.create({ cwd: home.work, prompt });
    await allQuiet(client, root.id);
    const [reply] = await toolReplies(client, root.id, "wait_session");
    assert.match(reply!.text, /^child_failed: the agent reported: "told as an error"/);
    assert.deepEqual(await callbacksTo(client, root.id), []);
    await checkInvariants(client, root.id);
  });

  test("repeated and parallel waits return the same result, marked as read before", async () => {
    const spy = await parent("parallel");
    const child = await spawn(spy, "shared", script(gate("shared"), "say once and for all"));
    const waits = [1, 2, 3].map(() => spy.ask<WaitChildrenOutput>("wait_session", { ids: [child.id] }));
    openGate(spy.folder, "shared");
    const replies = await Promise.all(waits);
    const after = await spy.ask<WaitChildrenOutput>("wait_session", { ids: [child.id] });
    const ends = [...replies, after].map((reply) => reply.done[0]!);
    assert.deepEqual(new Set(ends.map((each) => each.result)), new Set(["once and for all"]));
    assert.equal(new Set(ends.map((each) => each.deliveryId)).size, 1);
    assert.equal(ends.filter((each) => !each.delivered).length, 1);
    assert.equal([...replies, after].flatMap((reply) => reply.taken).length, 1);
    assert.match(
      (await spy.call("wait_session", { ids: [child.id] })).text,
      /\(You have read this before\.\)/,
    );
    await end(spy);
  });

  test("a wait whose connection is cut takes nothing: the callback comes as a turn", async () => {
    const spy = await parent("cut");
    const child = await spawn(spy, "result", script(gate("result"), "say not lost"));
    const connection = new AbortController();
    const waiting = spy.post("wait_session", { ids: [child.id] }, connection.signal);
    const response = await waiting;
    assert.equal(response.status, 200, "the wait has begun");
    connection.abort();
    await assert.rejects(response.text());
    openGate(spy.folder, "result");
    await quiet(client, child.id);
    const { messages } = await client.inbox({ id: spy.id });
    assert.deepEqual(
      messages.map((message) => [message.kind, message.status]),
      [["callback", "queued"]],
    );
    await end(spy);
    const told = await callbacksTo(client, spy.id);
    assert.equal(told.length, 1);
    assert.match(told[0]!.text, /Child "result".*\n.*[^]*not lost/);
    assert.doesNotMatch(told[0]!.text, /You may have seen this already/);
  });

  for (const [form, args] of [
    ["the list's", (id: string) => ({ ids: [id] })],
    ["the source's", (id: string) => ({ session_id: id, timeout_ms: 30_000 })],
  ] as const) {
    test(`a result in ${form} form that the agent never received is sent again, marked`, async () => {
      const spy = await parent(`unseen-${form.replaceAll(/\W/g, "")}`);
      // The test, not the agent, receives the reply, so the driver has no evidence that the reply landed.
      const child = await spawn(spy, "bearer", script("fail on purpose"));
      const reply = await spy.call("wait_session", args(child.id));
      assert.match(reply.text, /on purpose/);
      const { messages } = await client.inbox({ id: spy.id, all: true });
      assert.equal(messages.find((message) => message.kind === "callback")!.status, "taken");
      await end(spy);
      const told = await callbacksTo(client, spy.id);
      assert.equal(told.length, 1);
      assert.match(
        told[0]!.text,
        /^<!-- trigger:\w+ -->\nYou may have seen this already\.\n\[Kinfold\] Child "bearer"/,
      );
    });
  }

  test("one above the parent reads an end without taking it", async () => {
    const spy = await parent("grandparent");
    const grandchild = { name: "low", prompt: script(gate("low"), "say from below") };
    const child = await spawn(spy, "middle", script(spawnStep(grandchild), "say middle waits"));
    const low = await childNamed(client, child.id, "low");
    const waiting = spy.ask<WaitChildrenOutput>("wait_session", { ids: [low.id] });
    openGate(spy.folder, "low");
    const { done, taken } = await waiting;
    assert.deepEqual([done[0]!.result, taken], ["from below", []]);
    await quiet(client, child.id);
    const told = await callbacksTo(client, child.id);
    assert.equal(told.length, 1);
    assert.match(told[0]!.text, /from below/);
    await end(spy);
  });

  test("a session may wait only for its descendants", async () => {
    const spy = await parent("old");
    const folder = path.join(home.work, "young");
    mkdirSync(folder);
    const prompt = script(gate("end"));
    const { session } = await spy.ask<SpawnOutput>("spawn_session", { name: "young", prompt, cwd: folder });
    const sister = await spawn(spy, "sister", script("say hi"));
    await eventually("the child has its token", async () => {
      const { session: now } = await client.get({ id: session.id });
      return now.status === "running" && now.agentSessionId !== null;
    });
    const young = new Spy(session, folder);
    const { session: stranger } = await client.create({ cwd: home.work, prompt: "hello", name: "stranger" });
    const upward = await young.call("wait_session", { ids: [spy.id] });
    assert.equal(upward.isError, true);
    assert.match(
      upward.text,
      /^wait_on_ancestor: You cannot wait for your own parent or one above it: .* End your turn instead\./,
    );
    const itself = await young.call("wait_session", { session_id: young.id });
    assert.match(itself.text, /^wait_on_ancestor: You cannot wait for yourself/);
    const refused = await young.call("wait_session", { ids: [sister.id] });
    assert.match(refused.text, /^not_a_child: .* is not below you\..* list_sessions shows them\./);
    // `stranger` is a root in another folder and so has another scope: `young` cannot see it.
    const foreign = await young.call("wait_session", { ids: [stranger.id] });
    assert.match(foreign.text, /^not_found: No session /);
    const unknown = await young.call("wait_session", { ids: ["nobody"] });
    assert.match(unknown.text, /^not_found: No session "nobody"\./);
    openGate(folder, "end");
    await young.close();
    await end(spy);
    await quiet(client, stranger.id);
  });

  test("a person's wait takes nothing: the parent still gets its callback", async () => {
    const prompt = script(
      spawnStep({ name: "watched", prompt: script("sleep 200", "say seen by all") }),
      "say bye",
    );
    const { session: root } = await client.create({ cwd: home.work, prompt });
    const child = await childNamed(client, root.id, "watched");
    const [first, second] = await Promise.all(
      [1, 2].map(() => client.wait({ id: child.id, timeoutMs: 30_000 })),
    );
    assert.deepEqual([first!.outcome, first!.result, first!.timedOut], ["completed", "seen by all", false]);
    assert.deepEqual(second!.result, first!.result);
    await allQuiet(client, root.id);
    assert.equal((await callbacksTo(client, root.id)).length, 1);
    const look = await client.wait({ id: root.id, timeoutMs: 0 });
    assert.equal(look.status, "idle");
  });
});

test("sixteen parents that wait hold no slot: their queued children run", async () => {
  const home = new TestHome({ env: { KINFOLD_LIMITS_TURNS_MAX: "16" } });
  try {
    const client = await home.start();
    const prompt = script(
      spawnStep({ name: "child", prompt: script("say ready") }, "c"),
      tool("wait_session", { ids: ["${c.session_id}"] }),
      "say together",
    );
    const roots = await Promise.all(
      Array.from({ length: 16 }, () => client.create({ cwd: home.work, prompt })),
    );
    for (const { session } of roots) {
      const sessions = await allQuiet(client, session.id);
      assert.deepEqual(
        sessions.map((each) => each.outcome),
        ["completed", "completed"],
      );
      assert.deepEqual(await callbacksTo(client, session.id), []);
    }
  } finally {
    await home.close();
  }
});

test("processes of parents that wait do not count: their children's can start", async () => {
  const home = new TestHome({
    env: { KINFOLD_LIMITS_TURNS_MAX: "2", KINFOLD_LIMITS_PROCESSES_MAX: "2" },
  });
  try {
    const client = await home.start();
    const low = script(
      spawnStep({ name: "low", prompt: script("say low") }),
      tool("wait_session", {}),
      "say middle",
    );
    const prompt = script(spawnStep({ name: "middle", prompt: low }), tool("wait_session", {}), "say top");
    const roots = await Promise.all([1, 2, 3].map(() => client.create({ cwd: home.work, prompt })));
    for (const { session } of roots) {
      const sessions = await allQuiet(client, session.id);
      assert.deepEqual(
        sessions.map((each) => each.outcome),
        ["completed", "completed", "completed"],
      );
    }
  } finally {
    await home.close();
  }
});
