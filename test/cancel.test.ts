import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type Client, eventually, gone, TestHome } from "./support/daemon.ts";
import { callbacksTo, childNamed, quiet, running, toolReplies } from "./support/family.ts";
import { leasesRunning, marksIn } from "./support/processes.ts";
import { gate, openGate, script, spawnStep, tool } from "./support/script.ts";
import { openSpy, SPY_YAML } from "./support/spy.ts";

const RAISED = {
  KINFOLD_LIMITS_CHILDREN_MAX: "100",
  KINFOLD_LIMITS_SESSIONS_MAX: "200",
  KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1000",
  KINFOLD_LIMITS_TURNS_MAX: "12",
  KINFOLD_LIMITS_PROCESSES_MAX: "60",
};
const WORK = script("run sleep 600");

describe("cancel", { concurrency: 3 }, () => {
  const home = new TestHome({ env: RAISED, yaml: SPY_YAML });
  let client: Client;
  before(async () => {
    client = await home.start();
  });
  after(() => home.close());

  /** Creates a folder for one test. The test recognises its processes by this folder. */
  function folder(name: string): string {
    const made = path.join(home.work, name);
    mkdirSync(made);
    return made;
  }

  async function working(cwd: string, count = 1): Promise<void> {
    await eventually(
      `${count} agents run a command in ${cwd}`,
      async () => leasesRunning(marksIn(home, cwd), "sleep 600").size >= count,
    );
  }

  async function allGone(cwd: string): Promise<void> {
    await gone(() => marksIn(home, cwd).length === 0, 10_000);
    assert.deepEqual(marksIn(home, cwd), []);
  }

  test("children that run, start, queue or are waited for all end with their root", async () => {
    const cwd = folder("mixed");
    const names = Array.from({ length: 20 }, (_, at) => `c${at}`);
    const spawns = names.map((name) => spawnStep({ name, prompt: WORK }));
    const prompt = script(...spawns, tool("wait_session", {}));
    const { session: root } = await client.create({ name: "mixed", cwd, prompt });
    await working(cwd);
    await eventually("its parent waits and some are queued", async () => {
      const { sessions } = await client.tree({ id: root.id });
      return sessions.length === 21 && sessions.some((each) => each.waiting?.on === "slot");
    });
    const reply = await client.cancel({ id: root.id });
    assert.deepEqual([reply.cancelled, reply.stopped, reply.left], [true, 21, []]);
    await allGone(cwd);
    const { sessions } = await client.tree({ id: root.id });
    assert.deepEqual(
      new Set(sessions.map((each) => `${each.status} ${each.outcome}`)),
      new Set(["ended cancelled"]),
    );
    for (const { id } of sessions) {
      const { turns } = await client.turns({ id });
      await eventually("its turn is settled", async () =>
        (await client.turns({ id })).turns.every((turn) => turn.status === "cancelled"),
      );
      assert.ok(turns.length <= 1, "nothing began after the cancel");
    }
  });

  test("a session cancelled at any moment of its start leaves no process", async () => {
    const cwd = folder("starting");
    const moments = Array.from({ length: 12 }, (_, at) => at * 35);
    const ids = await Promise.all(
      moments.map(async (moment) => {
        const { session } = await client.create({ cwd, prompt: WORK });
        // Each session waits a different time, so that the cancels are spread over the duration of a start.
        await pause(moment);
        const reply = await client.cancel({ id: session.id });
        assert.deepEqual([reply.stopped, reply.left], [1, []]);
        return session.id;
      }),
    );
    await allGone(cwd);
    for (const id of ids) {
      const { session } = await client.get({ id });
      assert.deepEqual([session.status, session.outcome], ["ended", "cancelled"]);
    }
  });

  test("an agent that ignores a cancel is killed", async () => {
    const cwd = folder("deaf");
    const prompt = script("deaf", "say listening no more", "run sleep 600", "hang");
    const { session } = await client.create({ cwd, prompt });
    await working(cwd);
    const reply = await client.cancel({ id: session.id, turnOnly: true });
    assert.equal(reply.cancelled, true);
    await allGone(cwd);
    const kept = await quiet(client, session.id);
    assert.deepEqual([kept.status, kept.outcome], ["idle", "cancelled"]);

    await client.prompt({ id: session.id, prompt });
    await working(cwd);
    const end = await client.cancel({ id: session.id });
    assert.deepEqual([end.cancelled, end.left], [true, []]);
    await allGone(cwd);
    assert.equal((await client.get({ id: session.id })).session.status, "ended");
  });

  test("turnOnly stops the turn and keeps the session and its children", async () => {
    const cwd = folder("turn-only");
    const kid = spawnStep({ name: "kid", prompt: script(gate("go"), "say kid done") });
    const { session: root } = await client.create({ cwd, prompt: script(kid, "run sleep 600") });
    const child = await childNamed(client, root.id, "kid");
    await working(cwd);
    await running(client, child.id);
    const reply = await client.cancel({ id: root.id, turnOnly: true, reason: "wrong order" });
    assert.deepEqual([reply.cancelled, reply.stopped, reply.left], [true, 1, []]);
    const stopped = await quiet(client, root.id);
    assert.deepEqual([stopped.status, stopped.outcome], ["idle", "cancelled"]);
    assert.equal(leasesRunning(marksIn(home, cwd), "sleep 600").size, 0);
    assert.equal((await client.get({ id: child.id })).session.status, "running");

    openGate(cwd, "go");
    assert.equal((await quiet(client, child.id)).outcome, "completed");
    const held = await client.inbox({ id: root.id });
    assert.deepEqual(
      held.messages.map((each) => each.kind),
      ["callback"],
      "a stop holds the inbox",
    );
    await client.prompt({ id: root.id, prompt: script("say on again") });
    assert.equal((await quiet(client, root.id)).outcome, "completed");
    assert.equal((await callbacksTo(client, root.id)).length, 1);
    const again = await client.cancel({ id: root.id, turnOnly: true });
    assert.deepEqual([again.cancelled, again.stopped], [false, 0], "there was no turn to stop");
  });

  test("a finished session is ended by a cancel and its outcome stands; twice is fine", async () => {
    const cwd = folder("finished");
    const { session: root } = await client.create({ cwd, prompt: script("say ready") });
    const { session: child } = await client.spawn({ id: root.id, name: "kid", prompt: script("say done") });
    await quiet(client, child.id);
    await client.prompt({ id: root.id, prompt: script("say and now") });
    await quiet(client, root.id);
    const reply = await client.cancel({ id: child.id });
    assert.deepEqual([reply.cancelled, reply.stopped, reply.closed, reply.left], [false, 0, 1, []]);
    const { session } = await client.get({ id: child.id });
    assert.deepEqual([session.status, session.outcome], ["ended", "completed"]);
    const twice = await client.cancel({ id: child.id });
    assert.deepEqual([twice.cancelled, twice.stopped, twice.stopping, twice.left], [false, 0, [], []]);
    const told = await callbacksTo(client, root.id);
    assert.equal(told.length, 1);
    assert.match(told[0]!.text, /Child "kid" .* completed/);
    await assert.rejects(client.prompt({ id: child.id, prompt: "more" }), { code: "session_ended" });
  });

  test("when a cancel meets a turn's own end, one of the two counts, and the parent's callback reports that one", async () => {
    const cwd = folder("race");
    const { session: root } = await client.create({ cwd, prompt: script("say ready") });
    await quiet(client, root.id);
    const names = ["a", "b", "c", "d", "e", "f"];
    const prompt = script("say here", gate("end"), "say finished");
    const kids = await Promise.all(
      names.map(async (name) => (await client.spawn({ id: root.id, name, prompt })).session.id),
    );
    await eventually(
      "all of them stand at the gate",
      async () => leasesRunning(marksIn(home, cwd), "/bin/sh -c until").size === names.length,
    );
    openGate(cwd, "end");
    await Promise.all(
      kids.map(async (id, at) => {
        await pause(at * 25);
        await client.cancel({ id });
      }),
    );
    await quiet(client, root.id);
    const told = await eventually("all were told", async () => {
      const all = await callbacksTo(client, root.id);
      return all.length >= names.length ? all : null;
    });
    assert.equal(told.length, names.length);
    for (const [at, id] of kids.entries()) {
      const { session } = await client.get({ id });
      const { turns } = await client.turns({ id });
      assert.equal(session.status, "ended");
      assert.equal(turns[0]!.status, session.outcome);
      const own = told.filter((each) => each.text.includes(`Child "${names[at]}"`));
      assert.match(
        own[0]!.text,
        session.outcome === "completed" ? / completed / : / was CANCELLED by the user /,
      );
      assert.equal(own.length, 1);
    }
  });

  test("a late spawn by a cancelled session's process is refused, and none slips through beside the cancel", async () => {
    const spy = await openSpy(home, client, { name: "late", prompt: script("run sleep 600") });
    await working(spy.folder);
    const flood = Array.from({ length: 12 }, (_, at) =>
      spy.call("spawn_session", { name: `k${at}`, prompt: WORK }),
    );
    const [reply, ...spawned] = await Promise.allSettled([client.cancel({ id: spy.session.id }), ...flood]);
    assert.equal(reply.status, "fulfilled");
    const made = spawned.filter((each) => each.status === "fulfilled" && !each.value.isError).length;
    await assert.rejects(spy.call("spawn_session", { name: "later", prompt: WORK }));
    await allGone(spy.folder);
    const { sessions } = await client.tree({ id: spy.session.id });
    assert.equal(sessions.length, 1 + made);
    assert.ok(sessions.every((each) => each.status === "ended" && each.outcome === "cancelled"));
    await spy.close();
  });

  test("a person's cancel is told to the parent of the session named; callbacks below it are void", async () => {
    const cwd = folder("told");
    const { session: root } = await client.create({
      name: "boss",
      cwd: home.work,
      prompt: script("say ready"),
    });
    await quiet(client, root.id);
    // The children work in `cwd`, where the test later expects no process. The root works elsewhere, because
    // its idle process stays alive.
    const below = ["x", "y"].map((name) => spawnStep({ name, prompt: WORK }));
    const middle = await client.spawn({
      id: root.id,
      name: "middle",
      cwd,
      prompt: script(...below, "run sleep 600"),
    });
    await working(cwd, 3);
    await client.prompt({ id: middle.session.id, prompt: "never taken" });
    await client.cancel({ id: middle.session.id, reason: "wrong branch" });
    await quiet(client, root.id);
    const [told, ...more] = await callbacksTo(client, root.id);
    assert.deepEqual(more, []);
    assert.match(told!.text, /Child "middle" .* was CANCELLED by the user .*"wrong branch"/);
    assert.match(told!.text, /2 sessions below it stopped too, no process left/);
    await allGone(cwd);
    const { messages } = await client.inbox({ id: middle.session.id, all: true });
    const states = messages.map((each) => [each.kind, each.status, each.voidReason]);
    assert.deepEqual(states, [
      ["prompt", "void", "the session was cancelled"],
      ["prompt", "void", "the session was cancelled"],
      ["callback", "void", "its parent was cancelled with it"],
      ["callback", "void", "its parent was cancelled with it"],
    ]);
  });

  test("a session with one callback per turn reports its cancel once", async () => {
    const cwd = folder("by-turns");
    const { session: root } = await client.create({ cwd, prompt: script("say ready") });
    await quiet(client, root.id);
    const input = { id: root.id, name: "turner", prompt: WORK, callback: { when: "turn" as const } };
    const { session: child } = await client.spawn(input);
    await working(cwd);
    await client.cancel({ id: child.id });
    await eventually("its parent was told", async () => (await callbacksTo(client, root.id)).length === 1);
    await quiet(client, root.id);
    const told = await callbacksTo(client, root.id);
    assert.equal(told.length, 1);
    assert.match(told[0]!.text, /Child "turner" .* was CANCELLED/);
  });

  test("a parent that cancels knows by the reply and gets no callback; a detached child goes on", async () => {
    const cwd = folder("by-parent");
    const keep = { name: "keep", prompt: script(gate("go"), "say kept"), onParentEnd: "detach" };
    const middle = script(spawnStep(keep), "run sleep 600");
    const { session: root } = await client.create({
      cwd,
      prompt: script(
        spawnStep({ name: "middle", prompt: middle }, "m"),
        gate("cancel"),
        tool("cancel_session", { sessionId: "${m.session_id}", reason: "enough" }),
        "say stopped it",
      ),
    });
    await working(cwd);
    const child = await childNamed(client, root.id, "middle");
    const kept = await childNamed(client, child.id, "keep");
    openGate(cwd, "cancel");
    assert.equal((await quiet(client, root.id)).outcome, "completed");
    const [reply] = await toolReplies(client, root.id, "cancel_session");
    assert.deepEqual([reply?.head["cancelled"], reply?.head["stopped"], reply?.head["left"]], [true, 1, []]);
    assert.deepEqual(await callbacksTo(client, root.id), []);
    const { messages } = await client.inbox({ id: root.id, all: true });
    assert.deepEqual(
      messages.map((each) => [each.kind, each.status, each.carrier]),
      [
        ["prompt", "landed", "prompt"],
        ["callback", "landed", "tool"],
      ],
    );
    openGate(cwd, "go");
    assert.equal((await quiet(client, kept.id)).outcome, "completed");
    assert.notEqual((await client.get({ id: kept.id })).session.detachedAt, null);
    assert.deepEqual(
      (await client.inbox({ id: child.id, all: true })).messages.map((each) => each.kind),
      ["prompt"],
    );
  });
});
