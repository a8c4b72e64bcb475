import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Session } from "../src/contract/index.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants, childNamed, quiet, toolReplies } from "./support/family.ts";
import { gate, openGate, script, spawnStep } from "./support/script.ts";

const ENV = { KINFOLD_PARK_JITTER_MS: "0" };

describe("a vendor's usage limit", () => {
  const home = new TestHome({ env: { ...ENV, KINFOLD_LIMITS_TURNS_MAX: "1" } });
  let client: Client;
  before(async () => {
    client = await home.start();
  });
  after(() => home.close());

  test("parks a child: its parent is notified at once, its slot is free, and it continues by itself", async () => {
    const child = { name: "limited", prompt: script("say before", "limit 6", "say after") };
    const prompt = script(spawnStep(child), "say handed over");
    const { session: root } = await client.create({ cwd: home.work, prompt });
    const { id } = await childNamed(client, root.id, "limited");
    const parked = await waitsOn(client, id, "limit");
    const { since, until } = parked.waiting!;
    assert.ok(until! > since && until! - since <= 7_000);
    assert.deepEqual([parked.outcome, parked.round], [null, 1]);
    const news = await eventually("the parent is told", async () => {
      const { entries } = await client.entries({ id: root.id });
      return entries.find((entry) => entry.kind === "trigger") ?? null;
    });
    assert.match(
      news.body.text,
      /Child "limited" .* is parked at its vendor's usage limit: the agent reported: "usage limit, over in 6 s"\.\nIt continues by itself in \d/,
    );
    const { triggers } = await client.triggers({ id });
    const error = triggers.find((each) => each.type === "session_error")!;
    assert.equal(error.payload["kind"], "limit");
    assert.equal(typeof error.payload["resetAt"], "number");
    const { session: other } = await client.create({ cwd: home.work, prompt: script("say another") });
    assert.equal((await quiet(client, other.id)).outcome, "completed");
    assert.equal((await client.get({ id })).session.waiting?.on, "limit");
    const sessions = await allQuiet(client, root.id);
    assert.ok(sessions.every((each) => each.outcome === "completed"));
    const [callback, ...more] = await callbacksTo(client, root.id);
    assert.match(callback!.text, /"limited" .* completed/);
    assert.match(callback!.text, /\nafter\n/);
    assert.equal(more.length, 0);
    const closed = (await client.triggers({ id })).triggers.find((each) => each.id === error.id);
    assert.equal(closed?.status, "withdrawn");
    await checkInvariants(client, root.id);
  });

  test("messages queued meanwhile come after the turn that was cut", async () => {
    const { session } = await client.create({ cwd: home.work, prompt: script("limit 2", "say first") });
    await waitsOn(client, session.id, "limit");
    await client.prompt({ id: session.id, prompt: script("say second") });
    await quiet(client, session.id);
    assert.deepEqual(await said(client, session.id), ["first", "second"]);
  });

  test("fails a session that shall not wait, with the reset in its error", async () => {
    const ask = { cwd: home.work, prompt: script("limit 3600"), onLimit: "fail" } as const;
    const { session } = await client.create(ask);
    const failed = await quiet(client, session.id);
    assert.deepEqual(
      [failed.outcome, failed.outcomeReason],
      ["failed", 'the agent reported: "usage limit, over in 3600 s"'],
    );
    const { triggers } = await client.triggers({ id: session.id });
    assert.equal(triggers[0]?.payload["kind"], "limit");
    assert.ok((triggers[0]?.payload["resetAt"] as number) > Date.now());
  });

  test("is waited for at most six hours, and a cancel ends the wait", async () => {
    const { session } = await client.create({ cwd: home.work, prompt: script("limit 999999") });
    const { waiting } = await waitsOn(client, session.id, "limit");
    assert.equal(waiting!.until! - waiting!.since, 6 * 3_600_000);
    await client.cancel({ id: session.id });
    assert.equal((await client.get({ id: session.id })).session.status, "ended");
  });

  test("wakes the wait of every session above, once", async () => {
    const waiting = (as: string): string => `tool wait_session {"timeoutMs":40000} as ${as}`;
    const child = { name: "leaf", prompt: script("limit 3600") };
    const middle = { name: "middle", prompt: script(spawnStep(child), waiting("w"), gate("end")) };
    const prompt = script(spawnStep(middle), waiting("w"), gate("end"));
    const { session: root } = await client.create({ cwd: home.work, prompt });
    for (const id of [root.id, (await childNamed(client, root.id, "middle")).id]) {
      const [reply] = await eventually("its wait is answered", async () => {
        const replies = await toolReplies(client, id, "wait_session");
        return replies.length > 0 ? replies : null;
      });
      assert.equal((reply!.head["needs_you"] as string[]).length, 1);
      assert.match(reply!.text, /"leaf" .* is parked at its vendor's usage limit/);
    }
    openGate(home.work, "end");
    await client.cancel({ id: root.id });
  });
});

test("a parked session outlives the daemon, and goes on in the agent's own conversation", async () => {
  const home = new TestHome({ env: ENV });
  try {
    const client = await home.start();
    const child = { name: "limited", prompt: script("say before", "limit 3", "say after") };
    const { session: root } = await client.create({
      cwd: home.work,
      prompt: script(spawnStep(child)),
    });
    const { id } = await childNamed(client, root.id, "limited");
    await waitsOn(client, id, "limit");
    await home.kill();
    const next = await home.start();
    const sessions = await allQuiet(next, root.id);
    assert.ok(sessions.every((each) => each.outcome === "completed"));
    assert.deepEqual(await said(next, id), ["before", "after"]);
    assert.equal((await callbacksTo(next, root.id)).length, 1);
    await checkInvariants(next, root.id);
  } finally {
    await home.close();
  }
});

async function waitsOn(client: Client, id: string, on: string): Promise<Session> {
  return eventually(`${id} waits on ${on}`, async () => {
    const { session } = await client.get({ id });
    return session.waiting?.on === on ? session : null;
  });
}

async function said(client: Client, id: string): Promise<string[]> {
  const { entries } = await client.entries({ id });
  return entries
    .filter((entry) => entry.author === "agent" && entry.kind === "text")
    .map((entry) => entry.body.text);
}
