import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Refusal, type SpawnOutput } from "../src/contract/index.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, quiet, running, toolReplies } from "./support/family.ts";
import { gate, openGate, script, spawnStep } from "./support/script.ts";
import { openSpy, SPY_YAML } from "./support/spy.ts";

describe("with the default limits", () => {
  const home = new TestHome();
  let client: Client;
  before(async () => {
    client = await home.start();
  });
  after(() => home.close());

  test("a session five generations below its root may not spawn", async () => {
    const { session: root } = await client.create({ cwd: home.work, prompt: script("say root") });
    let { id } = root;
    for (let depth = 1; depth <= 4; depth += 1) {
      const { session } = await client.spawn({ id, prompt: script(`say ${depth}`) });
      assert.equal(session.depth, depth);
      id = session.id;
    }
    const prompt = script(spawnStep({ prompt: "one too many" }), "say deepest");
    const { session: deepest } = await client.spawn({ id, prompt });
    await quiet(client, deepest.id);
    const [reply] = await toolReplies(client, deepest.id, "spawn_session");
    assert.equal(reply!.isError, true);
    assert.equal(
      reply!.text,
      "limit_depth: This session is 5 generations below its root, and at most 5 are allowed. Do this part yourself, or report to your parent what should be delegated.",
    );
    await assert.rejects(client.spawn({ id: deepest.id, prompt: "again" }), {
      code: "limit_depth",
      details: { limit: 5, used: 5 },
    });
    assert.equal((await allQuiet(client, root.id)).length, 6);
  });

  test("of thirty spawns at once exactly eight are children; a finished one makes room", async () => {
    const { session: root } = await client.create({ cwd: home.work, prompt: script("say root") });
    const { made, refused } = await sorted(
      Array.from({ length: 30 }, (_, n) =>
        client.spawn({ id: root.id, name: `c${n}`, prompt: script("hang") }),
      ),
    );
    assert.deepEqual([made.length, refused.length], [8, 22]);
    const names = new Set(made.map((each) => each.session.name));
    for (const refusal of refused) {
      assert.equal(refusal.code, "limit_children");
      assert.equal(refusal.status, 409);
      assert.deepEqual(refusal.details, { limit: 8, used: 8 });
      const holders = /8 of 8 children are at work \((.*), …\)\./.exec(refusal.message)![1]!.split(", ");
      assert.ok(holders.every((name) => names.has(name)));
      assert.match(
        refusal.message,
        /Wait for one with wait_session, cancel one with cancel_session, or do this part yourself\.$/,
      );
    }
    assert.equal((await client.children({ id: root.id })).sessions.length, 8);
    assert.deepEqual([made[0]!.childrenMax, Math.max(...made.map((each) => each.childrenOpen))], [8, 8]);
    await client.cancel({ id: made[0]!.session.id });
    const { session: ninth } = await client.spawn({ id: root.id, prompt: script("say in its place") });
    await quiet(client, ninth.id);
    await client.spawn({ id: root.id, prompt: script("hang") });
    await assert.rejects(client.spawn({ id: root.id, prompt: "full again" }), { code: "limit_children" });
    await client.cancel({ id: root.id });
    await allQuiet(client, root.id);
  });

  test("sixteen turns run; those beyond wait for a slot and start by themselves", async () => {
    const create = () => client.create({ cwd: home.work, prompt: script("hang") });
    const roots = await Promise.all(Array.from({ length: 18 }, create));
    const busy = await eventually("sixteen run", async () => {
      const views = await Promise.all(roots.map(({ session }) => client.get({ id: session.id })));
      const running = views.filter(({ session }) => session.agentSessionId !== null);
      return running.length === 16 ? views.map(({ session }) => session) : null;
    });
    const queued = busy.filter((session) => session.status === "waiting");
    assert.equal(busy.filter((session) => session.status === "running").length, 16);
    assert.deepEqual(
      queued.map((session) => session.waiting?.on),
      ["slot", "slot"],
    );
    const late = await create();
    assert.deepEqual([late.status, late.queuedBehind], ["queued", 2]);
    const { counts } = await client.health();
    assert.deepEqual([counts.running, counts.waiting], [16, 3]);
    const working = busy.find((session) => session.status === "running")!;
    await client.cancel({ id: working.id });
    await eventually("the one that waited longest runs", async () => {
      const views = await Promise.all(queued.map(({ id }) => client.get({ id })));
      return views.filter(({ session }) => session.status === "running").length === 1;
    });
    assert.equal((await client.get({ id: late.session.id })).session.status, "waiting");
    await Promise.all([...roots, late].map(({ session }) => client.cancel({ id: session.id })));
  });
});

describe("with one turn at a time, so that families stay open without working", () => {
  const home = new TestHome({ yaml: SPY_YAML, env: { KINFOLD_LIMITS_TURNS_MAX: "1" } });
  let client: Client;
  before(async () => {
    client = await home.start();
  });
  after(() => home.close());

  test("a family spawns twenty times a minute, however many ask at once", async () => {
    const { session: root } = await client.create({ cwd: home.work, prompt: script("hang") });
    await running(client, root.id);
    const first = await Promise.all(
      Array.from({ length: 8 }, () => client.spawn({ id: root.id, prompt: "x" })),
    );
    const parents = first.slice(0, 4).map((each) => each.session.id);
    const { made, refused } = await sorted(
      parents.flatMap((id) => Array.from({ length: 6 }, () => client.spawn({ id, prompt: "y" }))),
    );
    assert.deepEqual([made.length, refused.length], [12, 12]);
    for (const refusal of refused) {
      assert.deepEqual([refusal.code, refusal.status], ["limit_rate", 429]);
      assert.deepEqual(refusal.details, { limit: 20, used: 20 });
      assert.match(
        refusal.message,
        /has spawned 20 sessions in the last minute, and at most 20 are allowed\. .*in a minute/,
      );
    }
    const other = await client.create({ cwd: home.work, prompt: "z" });
    await client.spawn({ id: other.session.id, prompt: "another family is not held up" });
    await client.cancel({ id: root.id });
    await client.cancel({ id: other.session.id });
  });

  test("an agent is told that its child is queued, and behind how many", async () => {
    const spy = await openSpy(home, client, { name: "queue", prompt: script(gate("end")) });
    const first = await spy.call("spawn_session", { name: "first", agent: "sim", prompt: script("say 1") });
    assert.equal(first.head["status"], "queued");
    assert.match(
      first.text,
      /Accepted sim sim-1 in .*\nQueued until a turn is free.*; it starts by itself\./,
    );
    const second = await spy.call("spawn_session", { name: "second", agent: "sim", prompt: script("say 2") });
    assert.match(second.text, /\nQueued behind 1 other.*; it starts by itself\./);
    openGate(spy.folder, "end");
    await spy.close();
    const sessions = await allQuiet(client, spy.id);
    assert.ok(sessions.every((each) => each.outcome === "completed"));
  });
});

test("a family has at most 64 sessions at work, however many ask at once", async () => {
  const env = { KINFOLD_LIMITS_TURNS_MAX: "1", KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1000" };
  const home = new TestHome({ env });
  try {
    const client = await home.start();
    const { session: root } = await client.create({ cwd: home.work, prompt: script("hang") });
    await running(client, root.id);
    const children = await Promise.all(
      Array.from({ length: 8 }, () => client.spawn({ id: root.id, prompt: "x" })),
    );
    const { made, refused } = await sorted(
      children.flatMap(({ session: { id } }) =>
        Array.from({ length: 8 }, () => client.spawn({ id, prompt: "y" })),
      ),
    );
    assert.deepEqual([made.length, refused.length], [55, 9]);
    for (const refusal of refused) {
      assert.deepEqual([refusal.code, refusal.status], ["limit_sessions", 409]);
      assert.deepEqual(refusal.details, { limit: 64, used: 64 });
      assert.match(
        refusal.message,
        /^64 of 64 sessions of this family are at work\. Finished sessions do not count\. Wait/,
      );
    }
    assert.equal((await client.tree({ id: root.id })).sessions.length, 64);
    await client.cancel({ id: made[0]!.session.id });
    const parentId = made[0]!.session.parentId!;
    assert.equal((await client.spawn({ id: parentId, prompt: "in its place" })).existing, false);
    const { stopped } = await client.cancel({ id: root.id });
    assert.equal(stopped, 64);
  } finally {
    await home.close();
  }
});

test("a family reaches its lifetime limit of spawns, finished children included", async () => {
  const home = new TestHome({ env: { KINFOLD_LIMITS_SPAWNS_MAX: "3" } });
  try {
    const client = await home.start();
    const { session: root } = await client.create({ cwd: home.work, prompt: script("say root") });
    const { made, refused } = await sorted(
      Array.from({ length: 6 }, () => client.spawn({ id: root.id, prompt: script("say ok") })),
    );
    assert.deepEqual([made.length, refused.length], [3, 3]);
    await allQuiet(client, root.id);
    await assert.rejects(client.spawn({ id: root.id, prompt: "late" }), (error: Refusal) => {
      assert.deepEqual([error.code, error.status], ["limit_spawns", 409]);
      assert.deepEqual(error.details, { limit: 3, used: 3 });
      assert.match(
        error.message,
        /spawned 3 sessions in total, and at most 3 are allowed\. Use tell_child to give more/,
      );
      return true;
    });
    const named = { id: root.id, name: "same", prompt: script("say ok") };
    await assert.rejects(client.spawn(named), { code: "limit_spawns" });
    assert.equal((await client.children({ id: root.id })).sessions.length, 3);
  } finally {
    await home.close();
  }
});

test("a repeat of a spawn that was accepted is answered even at the limit", async () => {
  const env = { KINFOLD_LIMITS_CHILDREN_MAX: "1", KINFOLD_LIMITS_TURNS_MAX: "1" };
  const home = new TestHome({ env });
  try {
    const client = await home.start();
    const { session: root } = await client.create({ cwd: home.work, prompt: script("hang") });
    const first = await client.spawn({ id: root.id, name: "one", prompt: "x", key: "k" });
    for (const again of [
      await client.spawn({ id: root.id, name: "one", prompt: "x" }),
      await client.spawn({ id: root.id, name: "one", prompt: "x", key: "k" }),
    ]) {
      assert.deepEqual([again.existing, again.session.id], [true, first.session.id]);
    }
    await assert.rejects(client.spawn({ id: root.id, name: "two", prompt: "x" }), { code: "limit_children" });
    await client.cancel({ id: root.id });
  } finally {
    await home.close();
  }
});

async function sorted(
  spawns: readonly Promise<SpawnOutput>[],
): Promise<{ made: SpawnOutput[]; refused: Refusal[] }> {
  const results = await Promise.allSettled(spawns);
  const made = results.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const refused = results.flatMap((result) =>
    result.status === "rejected" ? [result.reason as Refusal] : [],
  );
  assert.ok(refused.every((each) => each instanceof Refusal));
  return { made, refused };
}
