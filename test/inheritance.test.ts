import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { testPostgres } from "../src/store/testing/test-postgres.ts";
import { type Client, type DaemonSetup, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, childNamed, quiet, toolReplies } from "./support/family.ts";
import { gate, openGate, script, spawnStep, tool } from "./support/script.ts";

async function inherited(client: Client, id: string): Promise<string> {
  return (await client.inspect({ id, view: "inherited" })).text;
}

async function said(client: Client, id: string): Promise<string[]> {
  const { entries } = await client.entries({ id, limit: 1000 });
  return entries
    .filter((entry) => entry.author === "agent" && entry.kind === "text")
    .map((each) => each.body.text);
}

async function inHome(
  setup: DaemonSetup,
  story: (client: Client, home: TestHome) => Promise<void>,
): Promise<void> {
  const home = new TestHome(setup);
  try {
    await story(await home.start(), home);
  } finally {
    await home.close();
  }
}

function checkpoint(
  summary: string,
  more: { entities?: string[]; constraints?: Record<string, string> } = {},
): string {
  return tool("checkpoint", { summary, ...more });
}

async function midTurn(client: Client, home: TestHome): Promise<void> {
  // This prompt contains all the words that the test looks for in the brief. The brief itself leaves the
  // prompt out, because a checkpoint follows it.
  const prompt = script(
    checkpoint("Half of it is done.", { constraints: { push: "Never push." } }),
    "say the first words",
    "think a private thought",
    "run echo seen by a tool",
    "say the very newest words",
    spawnStep({ name: "kid", prompt: script("recall agent: the very newest words", "recall private") }),
  );
  const { session: root } = await client.create({ name: "root", cwd: home.work, title: "Release", prompt });
  await allQuiet(client, root.id);
  const child = await childNamed(client, root.id, "kid");
  const text = await inherited(client, child.id);
  const fence = `id="${child.shortId}"`;
  const reported = /\n {2}agent: \{"checkpoint"[^]*?inherit it\./;
  assert.equal(
    text.replace(reported, ""),
    [
      "## Inherited from Parent Session",
      "",
      "Release",
      "Checkpoint:",
      "  Half of it is done.",
      "Recent context:",
      "  agent: the first words",
      "  agent calls shell: echo seen by a tool",
      "  shell returned (exit 0):",
      `    <tool-output ${fence}>`,
      "    seen by a tool",
      `    </tool-output ${fence}>`,
      "  agent: the very newest words",
      "  agent calls spawn_session (no result yet)",
      "Active constraints: push: Never push.",
    ].join("\n"),
  );
  const { entries } = await client.entries({ id: child.id, limit: 100 });
  assert.deepEqual(
    [entries[0]?.kind, entries[0]?.author, entries[0]?.body.text],
    ["inherited", "daemon", text],
  );
  assert.deepEqual(await said(client, child.id), [
    "sim: recalls agent: the very newest words",
    "sim: does not recall private",
  ]);
  const { hits } = await client.search({ query: '"first words"', id: "all" });
  assert.deepEqual([...new Set(hits.map((hit) => hit.sessionId))], [root.id], "found where it was said");
  const [reply] = await toolReplies(client, root.id, "spawn_session");
  assert.match(reply!.text, /; inherits a \d+ B brief\. 1 of 8/);
}

const MID_TURN =
  "a child spawned in the middle of its parent's turn has its newest words, and its agent gets them";
test(MID_TURN, () => inHome({}, midTurn));

describe("on PostgreSQL", () => {
  let postgres: Awaited<ReturnType<typeof testPostgres>>;
  before(async () => {
    postgres = await testPostgres();
  });
  after(() => postgres.stop());
  test(MID_TURN, async () => inHome({ store: await postgres.url() }, midTurn));
});

const MANY = { KINFOLD_LIMITS_CHILDREN_MAX: "100", KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1000" };
test("a child inherits the last words of its parent, however soon after them it is spawned", () =>
  inHome({ env: MANY }, async (client, home) => {
    const numbers = Array.from({ length: 24 }, (_, n) => n);
    const steps = numbers.flatMap((n) => [
      `say word ${n}`,
      spawnStep({ name: `kid-${n}`, prompt: "sim> say hello" }),
    ]);
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt: script(...steps) });
    await allQuiet(client, root.id);
    for (const n of numbers) {
      const child = await childNamed(client, root.id, `kid-${n}`);
      const text = await inherited(client, child.id);
      assert.ok(text.endsWith(`\n  agent: word ${n}\n  agent calls spawn_session (no result yet)`), text);
    }
  }));

test("a grandchild's brief is its parent's, and constraints hold for all generations until they are withdrawn where they were set", () =>
  inHome({}, async (client, home) => {
    const grandchild = spawnStep({ name: "grandchild", prompt: "sim> say hello" });
    const child = script(
      checkpoint("The child's half.", { entities: ["src/child.ts"], constraints: { style: "Tabs." } }),
      tool("checkpoint", { summary: "Free.", constraints: { push: "" } }),
      grandchild,
    );
    const root = script(
      checkpoint("The root's plan.", { constraints: { push: "Never push." } }),
      spawnStep({ name: "child", prompt: child }),
    );
    const { session } = await client.create({ name: "root", cwd: home.work, prompt: root });
    const [, kid, grandkid] = await allQuiet(client, session.id);
    assert.match(await inherited(client, kid!.id), /\nCheckpoint:\n {2}The root's plan\.\n/);
    const text = await inherited(client, grandkid!.id);
    assert.match(text, /\nCheckpoint:\n {2}The child's half\.\n/);
    assert.match(
      text,
      /\nFocal entities: src\/child\.ts\nActive constraints: push: Never push\.; style: Tabs\.$/,
    );
    assert.doesNotMatch(text, /The root's plan/);
    const [, refused] = await toolReplies(client, kid!.id, "checkpoint");
    assert.match(refused!.text, /^forbidden: The constraint "push" was set by "root" /);
    await client.checkpoint({ id: session.id, summary: "Go.", constraints: { push: "" } });
    const later = await client.spawn({ id: kid!.id, name: "later", prompt: "sim> say hello" });
    assert.match(await inherited(client, later.session.id), /\nActive constraints: style: Tabs\.$/);
  }));

test("what a child is given is chosen per spawn, by its profile, or not at all, and the reply says why there is nothing", () =>
  inHome({}, async (client, home) => {
    const prompt = script(checkpoint("Half."), "say words", gate("go"));
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
    await eventually("it has spoken", async () => (await said(client, root.id)).includes("words"));
    const spawn = (inherit: "none" | "brief" | "tail") =>
      client.spawn({ id: root.id, prompt: `say ${inherit}`, inherit });
    const none = await spawn("none");
    assert.deepEqual([none.inherited, none.effective.inherit], [{ bytes: 0, why: null }, "none"]);
    assert.equal(await inherited(client, none.session.id), "It was given nothing of its parent's context.");
    const tail = await spawn("tail");
    const text = await inherited(client, tail.session.id);
    assert.match(
      text,
      /^## Inherited from Parent Session\n\nsim> tool checkpoint .*\nRecent context:\n {2}user: /,
    );
    assert.equal(tail.inherited.bytes, Buffer.byteLength(text));
    assert.match(await inherited(client, (await spawn("brief")).session.id), /\nCheckpoint:\n {2}Half\.\n/);
    const cold = "---\nname: cold\ndescription: starts cold\ninherit: none\n---\nWork.\n";
    mkdirSync(path.join(home.home, "profiles"), { recursive: true });
    writeFileSync(path.join(home.home, "profiles", "cold.md"), cold);
    const profiled = await client.spawn({ id: root.id, prompt: "hello", profile: "cold" });
    assert.equal(profiled.effective.inherit, "none");
    const asked = await client.spawn({ id: root.id, prompt: "hello", profile: "cold", inherit: "brief" });
    assert.equal(asked.effective.inherit, "brief");
    openGate(home.work, "go");
    const { session: attached } = await client.attach({ client: "terminal", cwd: home.work });
    const empty = await client.spawn({ id: attached.id, agent: "sim", prompt: "hello" });
    assert.deepEqual(empty.inherited, { bytes: 0, why: "its parent has said and done nothing yet" });
    await assert.rejects(client.create({ cwd: home.work, prompt: "x", inherit: "brief" }), {
      code: "invalid_input",
    });
    await allQuiet(client, root.id);
    assert.equal(await inherited(client, root.id), "A root session inherits nothing.");
  }));

test("where inheritContext is off nothing is inherited, and asking for it is refused", () =>
  inHome({ yaml: JSON.stringify({ inheritContext: false }) }, async (client, home) => {
    const prompt = script("say words", spawnStep({ name: "kid", prompt: "sim> say hello" }));
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
    await allQuiet(client, root.id);
    const [reply] = await toolReplies(client, root.id, "spawn_session");
    assert.match(reply!.text, /inherits nothing: the configuration has inheritContext off\./);
    const asked = client.spawn({ id: root.id, prompt: "x", inherit: "tail" });
    await assert.rejects(asked, { code: "inherit_off" });
  }));

test("a fork begins with its parent's conversation; an agent that cannot fork is refused, with those that can", () =>
  inHome({}, async (client, home) => {
    const kid = script("recall what only the root heard", "recall nobody said this");
    const { session: root } = await client.create({
      name: "root",
      cwd: home.work,
      prompt: "what only the root heard",
    });
    await quiet(client, root.id);
    const fork = await client.spawn({ id: root.id, name: "fork", prompt: kid, inherit: "fork" });
    assert.equal(fork.effective.inherit, "fork");
    await allQuiet(client, root.id);
    assert.deepEqual(await said(client, fork.session.id), [
      "sim: recalls what only the root heard",
      "sim: does not recall nobody said this",
    ]);
    assert.equal(await inherited(client, fork.session.id), `A fork of the conversation of ${root.shortId}.`);
    const { session: again } = await client.get({ id: fork.session.id });
    assert.notEqual(again.agentSessionId, (await client.get({ id: root.id })).session.agentSessionId);
    await home.kill();
    const after = await home.start();
    await after.prompt({ id: fork.session.id, prompt: script("recall what only the root heard") });
    await allQuiet(after, root.id);
    assert.equal((await said(after, fork.session.id)).at(-1), "sim: recalls what only the root heard");
    const { session: attached } = await after.attach({ client: "terminal", cwd: home.work });
    await assert.rejects(after.spawn({ id: attached.id, agent: "sim", prompt: "x", inherit: "fork" }), {
      code: "cannot_fork",
      message: /Agents that can fork their own conversations: sim\b/,
    });
  }));

for (const moment of ["spawn.committed", "agent.identified", "prompt.sent"] as const) {
  test(`a child has its brief once, also where the daemon is killed at ${moment}`, async () => {
    const home = new TestHome();
    try {
      const count = moment === "spawn.committed" ? 1 : 2;
      const client = await home.start({ crashAt: { moment, count } });
      const kid = script("recall agent: words");
      const prompt = script(checkpoint("So far."), "say words", spawnStep({ name: "kid", prompt: kid }));
      const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
      await home.ended();
      const again = await home.start();
      await allQuiet(again, root.id);
      const child = await childNamed(again, root.id, "kid");
      assert.deepEqual(await said(again, child.id), ["sim: recalls agent: words"]);
      const { entries } = await again.entries({ id: child.id, limit: 100 });
      assert.equal(entries.filter((entry) => entry.kind === "inherited").length, 1);
      const { sessions } = await again.children({ id: root.id });
      assert.equal(sessions.length, 1);
    } finally {
      await home.close();
    }
  });
}

test("a conversation that cannot be loaded starts anew with what was inherited and the session's own brief", () =>
  inHome({ env: { KINFOLD_IDLE_MS: "0" } }, async (client, home) => {
    const kid = script(checkpoint("My own half.", { constraints: { mine: "Mine." } }), "say my own words");
    const prompt = script(checkpoint("The root's half."), spawnStep({ name: "kid", prompt: kid }));
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
    await allQuiet(client, root.id);
    const child = await childNamed(client, root.id, "kid");
    await eventually("no process is left", async () => home.agents().length === 0);
    const folder = path.join(home.home, "sim");
    for (const file of readdirSync(folder)) if (file.endsWith(".jsonl")) rmSync(path.join(folder, file));
    const recall = ["The root's half.", "My own half.", "agent: my own words", "mine: Mine.", "never said"];
    await client.prompt({ id: child.id, prompt: script(...recall.map((each) => `recall ${each}`)) });
    await allQuiet(client, root.id);
    assert.deepEqual((await said(client, child.id)).slice(-5), [
      ...recall.slice(0, -1).map((each) => `sim: recalls ${each}`),
      "sim: does not recall never said",
    ]);
    const { text } = await client.transcript({ id: child.id });
    assert.match(text, /could not be loaded .*; a new one starts/);
  }));

test("without an explicit checkpoint, a brief has the last plan, the files and the agent's summary", () =>
  inHome({}, async (client, home) => {
    const prompt = script("plan read; fix", "write notes.txt hello", "say done");
    const { session: root } = await client.create({ name: "root", title: "Fix it", cwd: home.work, prompt });
    await quiet(client, root.id);
    const spawn = async (): Promise<string> => {
      const { session } = await client.spawn({ id: root.id, prompt: "sim> say hello" });
      return inherited(client, session.id);
    };
    const automatic = await spawn();
    assert.match(
      automatic,
      /\nCheckpoint:\n {2}Fix it\n {2}Plan:\n {2}- \[pending\] read\n {2}- \[pending\] fix\n/,
    );
    assert.match(
      automatic,
      /\nRecent context:\n {2}user: sim> plan read; fix\n/,
      "it does not shorten the tail",
    );
    assert.match(automatic, /\nFocal entities: notes\.txt$/);
    await allQuiet(client, root.id);
    await client.prompt({ id: root.id, prompt: script("compact What was: a plan.", "say after it") });
    await allQuiet(client, root.id);
    const compacted = await spawn();
    assert.match(compacted, /\nCheckpoint:\n {2}What was: a plan\.\nRecent context:\n {2}agent: after it\n/);
    await client.checkpoint({ id: root.id, summary: "Stated." });
    assert.match(await spawn(), /\nCheckpoint:\n {2}Stated\./);
  }));

test("each step of a chain inherits from the chain's parent", () =>
  inHome({}, async (client, home) => {
    const tasks = [{ task: "sim> say one" }, { task: "sim> recall agent: words" }];
    const prompt = script(checkpoint("So far."), "say words", tool("subagent", { tasks, mode: "chain" }));
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
    await allQuiet(client, root.id);
    const { sessions } = await client.children({ id: root.id });
    assert.deepEqual(
      sessions.map((each) => each.effective.inherit),
      ["brief", "brief"],
    );
    assert.deepEqual(await said(client, sessions[1]!.id), ["sim: recalls agent: words"]);
  }));
