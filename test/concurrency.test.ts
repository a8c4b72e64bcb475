import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { connect } from "../src/client/index.ts";
import type { SpawnOutput } from "../src/contract/index.ts";
import { type Client, TestHome } from "./support/daemon.ts";
import { allQuiet, checkInvariants, quiet } from "./support/family.ts";
import { gate, openGate, script, tool } from "./support/script.ts";
import { openSpy, SPY_YAML } from "./support/spy.ts";

const RAISED = {
  KINFOLD_LIMITS_CHILDREN_MAX: "200",
  KINFOLD_LIMITS_SESSIONS_MAX: "400",
  KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1000",
  KINFOLD_LIMITS_TURNS_MAX: "4",
};

describe("with limits raised", () => {
  const home = new TestHome({ yaml: SPY_YAML, env: RAISED });
  let client: Client;
  before(async () => {
    client = await home.start();
  });
  after(() => home.close());

  test("64 spawns at once from one parent over HTTP are 64 children", async () => {
    const spy = await openSpy(home, client, { name: "many", prompt: script(gate("end")) });
    const asParent = connect({ url: home.url, token: spy.token });
    const replies = await times(64, () =>
      asParent.spawn({ id: spy.id, agent: "sim", prompt: script("say ok") }),
    );
    assert.equal(new Set(replies.map((reply) => reply.session.id)).size, 64);
    assert.ok(replies.every((reply) => !reply.existing));
    const { sessions } = await client.children({ id: spy.id });
    assert.equal(sessions.length, 64);
    assert.ok(sessions.every((each) => each.spawnPoint !== null && each.source === "subsession"));
    assert.ok(
      replies.some((reply) => reply.status === "queued"),
      "only four turns run at once",
    );
    const { stopped, left } = await client.cancel({ id: spy.id, reason: "enough" });
    assert.ok(stopped <= 65 && stopped > 1);
    assert.deepEqual(left, []);
    const ended = await allQuiet(client, spy.id);
    assert.ok(ended.every((each) => each.status === "ended" && each.outcome !== null));
    await checkInvariants(client, spy.id);
  });

  test("the same name 50 times at once is one child, the rest are told that it exists", async () => {
    const { session: root } = await client.create({ cwd: home.work, prompt: script("say root") });
    const input = { id: root.id, name: "only", prompt: script("hang") };
    const replies = await times(50, () => client.spawn(input));
    assert.deepEqual(tally(replies), { made: 1, existing: 49, children: 1 });
    const other = await client.spawn({ ...input, prompt: "another task under the same name" });
    assert.deepEqual([other.existing, other.session.id], [true, replies[0]!.session.id]);
    await client.cancel({ id: replies[0]!.session.id });
    const later = await client.spawn({ ...input, prompt: script("say later") });
    assert.equal(later.existing, false, "the name is free once its child is not open any more");
    assert.notEqual(later.session.id, replies[0]!.session.id);
    const { session: newest } = await client.get({ id: "only" });
    assert.equal(newest.id, later.session.id, "a name means its newest holder");
    await allQuiet(client, root.id);
  });

  test("the same Idempotency-Key 50 times at once is one child, and with another input refused", async () => {
    const { session: root } = await client.create({ cwd: home.work, prompt: script("say root") });
    const path = `/api/sessions/${root.id}/spawn`;
    const body = { prompt: script("say keyed") };
    const replies = await times(50, () => send(path, body, "key-1"));
    assert.deepEqual(tally(replies.map((reply) => reply.body as unknown as SpawnOutput)), {
      made: 1,
      existing: 49,
      children: 1,
    });
    await allQuiet(client, root.id);
    const late = await send(path, body, "key-1");
    assert.equal(late.body["existing"], true, "a key does not expire with its child's round");
    const reused = await send(path, { prompt: script("say something else") }, "key-1");
    assert.equal(reused.status, 409);
    assert.deepEqual(reused.body["error"], {
      code: "key_reused",
      message:
        'The key "key-1" was used before with another input. Send the same input again, or choose another key.',
      details: { key: "key-1" },
    });
    assert.equal((await client.children({ id: root.id })).sessions.length, 1);
  });

  test("a key is the same however its parent is named, and belongs to its caller", async () => {
    const { session: root } = await client.create({
      cwd: home.work,
      prompt: script("say root"),
      name: "keyed",
    });
    const prompt = script("say once");
    const { session: first } = await client.spawn({ id: root.id, prompt, key: "named" });
    for (const id of [root.shortId, "keyed"]) {
      const again = await client.spawn({ id, prompt, key: "named" });
      assert.deepEqual([again.existing, again.session.id], [true, first.id]);
    }
    const spy = await openSpy(home, client, { name: "key-owner", prompt: script(gate("end")) });
    const own = await spy.ask<SpawnOutput>("spawn_session", { prompt, key: "named", agent: "sim" });
    assert.equal(own.existing, false);
    openGate(spy.folder, "end");
    await spy.close();
    await allQuiet(client, root.id);
    await allQuiet(client, spy.id);
  });

  test("the same root and the same prompt with a key are made once", async () => {
    const input = { cwd: home.work, prompt: script("say root once"), key: "root-key" };
    const replies = await times(20, () => client.create(input));
    assert.deepEqual(tally(replies), { made: 1, existing: 19, children: 1 });
    const { id } = replies[0]!.session;
    await assert.rejects(client.create({ ...input, prompt: "other" }), { code: "key_reused" });
    const sent = await times(20, () => client.prompt({ id, prompt: script("say more"), key: "prompt-key" }));
    assert.equal(new Set(sent.map((each) => each.messageId)).size, 1);
    assert.equal(sent.filter((each) => !each.existing).length, 1);
    await assert.rejects(client.prompt({ id, prompt: "other", key: "prompt-key" }), { code: "key_reused" });
    await quiet(client, id);
    assert.equal((await client.turns({ id })).turns.length, 2);
  });

  test("two prompts at once on an idle session are one turn after the other, in order", async () => {
    const { session } = await client.create({ cwd: home.work, prompt: script("say first") });
    await quiet(client, session.id);
    const sent = await Promise.all(
      ["a", "b"].map((name) => client.prompt({ id: session.id, prompt: script("sleep 100", `say ${name}`) })),
    );
    await quiet(client, session.id);
    const turns = (await client.turns({ id: session.id })).turns.toReversed();
    assert.equal(turns.length, 3);
    const byPosition = sent.toSorted((a, b) => a.position - b.position);
    assert.deepEqual(
      turns.slice(1).map((turn) => turn.messageIds),
      byPosition.map((each) => [each.messageId]),
    );
    assert.ok(turns.every((turn) => turn.status === "completed"));
    for (const [index, turn] of turns.slice(1).entries()) {
      assert.ok(turn.startedAt >= turns[index]!.settledAt!, "no two turns of a session overlap");
    }
  });

  test("prompts of two senders keep each sender's order", async () => {
    const spy = await openSpy(home, client, { name: "sender", prompt: script(gate("end")) });
    const { session: child } = await spy.ask<SpawnOutput>("spawn_session", {
      prompt: script(gate("go"), "say begin"),
      agent: "sim",
      name: "reader",
    });
    const numbers = [0, 1, 2, 3];
    const fromPerson = async (): Promise<void> => {
      for (const n of numbers) await client.prompt({ id: child.id, prompt: script(`say person ${n}`) });
    };
    const fromParent = async (): Promise<void> => {
      for (const n of numbers) {
        const message = script(`say parent ${n}`);
        await spy.call("tell_child", { sessionId: child.id, message, deliverAs: "followUp" });
      }
    };
    await Promise.all([fromPerson(), fromParent()]);
    openGate(spy.folder, "go");
    await quiet(client, child.id);
    const { entries } = await client.entries({ id: child.id, limit: 1000 });
    const said = entries.filter((entry) => entry.author === "agent" && entry.kind === "text");
    for (const sender of ["person", "parent"]) {
      const own = said.map((entry) => entry.body.text).filter((text) => text.startsWith(sender));
      assert.deepEqual(
        own,
        numbers.map((n) => `${sender} ${n}`),
      );
    }
    const { messages } = await client.inbox({ id: child.id, all: true });
    assert.ok(messages.every((message) => message.status === "landed"));
    openGate(spy.folder, "end");
    await spy.close();
    await allQuiet(client, spy.id);
  });

  test("two equal spawns by the same agent without a name are two children", async () => {
    const step = tool("spawn_session", { prompt: script("say twin") });
    const { session: root } = await client.create({ cwd: home.work, prompt: script(step, step, "say both") });
    const sessions = await allQuiet(client, root.id);
    assert.equal(sessions.length, 3);
    await checkInvariants(client, root.id);
  });

  async function send(
    path: string,
    body: object,
    key: string,
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    const response = await fetch(`${home.url}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${home.token}`,
        "content-type": "application/json",
        "idempotency-key": key,
      },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }
});

test("a process that ends because it is idle takes no message with it", async () => {
  const home = new TestHome({ env: { KINFOLD_IDLE_MS: "0" } });
  try {
    const client = await home.start();
    const { session } = await client.create({ cwd: home.work, prompt: script("say 0") });
    const numbers = Array.from({ length: 12 }, (_, n) => n + 1);
    for (const n of numbers) await client.prompt({ id: session.id, prompt: script(`say ${n}`) });
    await quiet(client, session.id);
    const { turns } = await client.turns({ id: session.id });
    assert.equal(turns.length, 13);
    assert.deepEqual(
      turns.filter((turn) => turn.status !== "completed"),
      [],
    );
  } finally {
    await home.close();
  }
});

function times<T>(count: number, run: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, () => run()));
}

function tally(replies: readonly SpawnOutput[]): { made: number; existing: number; children: number } {
  return {
    made: replies.filter((reply) => !reply.existing).length,
    existing: replies.filter((reply) => reply.existing).length,
    children: new Set(replies.map((reply) => reply.session.id)).size,
  };
}
