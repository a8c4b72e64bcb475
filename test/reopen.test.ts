import assert from "node:assert/strict";
import test from "node:test";
import { eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, quiet, running } from "./support/family.ts";
import { script, spawnStep } from "./support/script.ts";

test("a cancel of a finished family stops nothing, lists what it closes and keeps the times of last activity", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const kids = ["a", "b"].map((name) => spawnStep({ name, agent: "sim", prompt: script(`say ${name}`) }));
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt: script(...kids) });
    const before = await allQuiet(client, root.id);
    assert.equal(before.length, 3);
    const reply = await client.cancel({ id: root.id });
    assert.deepEqual([reply.cancelled, reply.stopped, reply.closed, reply.left], [false, 0, 3, []]);
    const { sessions: after } = await client.tree({ id: root.id });
    for (const session of after) {
      const earlier = before.find((each) => each.id === session.id)!;
      assert.deepEqual([session.status, session.outcome], ["ended", "completed"]);
      assert.equal(session.lastActivityAt, earlier.lastActivityAt);
    }
    const again = await client.cancel({ id: root.id });
    assert.deepEqual([again.stopped, again.closed], [0, 0]);
  } finally {
    await home.close();
  }
});

test("a cancel counts working sessions separately from finished ones", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt: script("say hi") });
    await quiet(client, root.id);
    const { session: kid } = await client.spawn({ id: root.id, name: "kid", prompt: script("hang") });
    await running(client, kid.id);
    const reply = await client.cancel({ id: root.id });
    assert.deepEqual([reply.cancelled, reply.stopped, reply.closed], [false, 1, 1]);
  } finally {
    await home.close();
  }
});

test("a person reopens a cancelled session: a new round, void messages stay void, those below stay ended", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt: script("say hi") });
    await quiet(client, root.id);
    await client.spawn({ id: root.id, name: "kid", prompt: script("say kid") });
    await allQuiet(client, root.id);
    await client.prompt({ id: root.id, prompt: script("hang") });
    await running(client, root.id);
    await client.prompt({ id: root.id, prompt: script("say lost") });
    const { session: working } = await client.get({ id: root.id });
    assert.equal((await client.cancel({ id: root.id })).stopped, 1);
    await assert.rejects(client.prompt({ id: root.id, prompt: "x" }), { code: "session_ended" });

    const { session } = await client.reopen({ id: root.id });
    assert.deepEqual([session.status, session.outcome, session.endedAt], ["idle", "cancelled", null]);
    assert.equal((await client.reopen({ id: root.id })).session.status, "idle", "once more changes nothing");
    await client.prompt({ id: root.id, prompt: script("recall hi", "say again") });
    const after = await quiet(client, root.id);
    assert.deepEqual([after.status, after.outcome, after.round], ["idle", "completed", working.round + 1]);
    const { text } = await client.transcript({ id: root.id });
    assert.match(text, /again/);
    const { messages } = await client.inbox({ id: root.id, all: true });
    assert.deepEqual(
      messages.filter((message) => message.body?.includes("say lost")).map((message) => message.status),
      ["void"],
    );
    assert.equal((await client.get({ id: "kid" })).session.status, "ended");
  } finally {
    await home.close();
  }
});

test("a reopened session is still open after the daemon was killed", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const { session } = await client.create({ name: "root", cwd: home.work, prompt: script("hang") });
    await running(client, session.id);
    await client.cancel({ id: session.id });
    await eventually("it is reopened", async () => {
      // The daemon refuses to reopen the session until its turn has stopped.
      const reopened = await client.reopen({ id: session.id }).catch(() => null);
      return reopened?.session.status === "idle" || null;
    });
    await home.kill();
    const after = await home.start();
    await after.prompt({ id: session.id, prompt: script("say alive") });
    assert.equal((await quiet(after, session.id)).outcome, "completed");
  } finally {
    await home.close();
  }
});
