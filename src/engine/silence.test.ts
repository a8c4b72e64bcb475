import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentUpdate, Driver } from "../drivers/port.ts";
import { beats, holdAt, startFake, withHandles } from "./testing/fake-daemon.ts";

test("a silent agent's evidence says so, its parent and the person are notified, and then its turn fails", async (t) => {
  const config = { silenceMs: 1_000, silenceMaxMs: 3_500 };
  const { client, store, quiet, when } = await startFake(t, { config });
  const { session: root } = await client.create({ prompt: "sim> say root" });
  await quiet(root.id);
  const { session } = await client.spawn({ id: root.id, name: "mute", prompt: "sim> hang" });
  const evidence = await when(async () => {
    const found = (await store.read.sessions.byId(session.id))?.evidence;
    return found?.reason.startsWith("nothing heard for ") && found;
  });
  assert.match(evidence.reason, /^nothing heard for \d+ s: waiting for its model$/);
  const notice = await when(async () => {
    const entries = await store.read.entries.page(root.id, { limit: 100 });
    return entries.find((entry) => entry.kind === "trigger");
  });
  assert.match(
    notice.body.text,
    /Child "mute" .* may be stuck: nothing heard for \d+ s: waiting for its model\./,
  );
  const { triggers } = await client.listTriggers({ for: "person" });
  assert.deepEqual(
    triggers.map((each) => [each.sessionId, each.type, each.payload["kind"]]),
    [[session.id, "session_error", "silence"]],
  );
  const ended = await quiet(session.id);
  assert.deepEqual([ended.outcome, ended.outcomeReason], ["failed", "no sign of life for 3.5 s, stopped"]);
  assert.deepEqual((await client.listTriggers({ for: "person" })).triggers, []);
});

test("an agent that sends an update again needs no attention any more", async (t) => {
  const seen: ((update: AgentUpdate) => void)[] = [];
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    open(request) {
      seen.push(request.onUpdate);
      return driver.open(request);
    },
  });
  const config = { silenceMs: 1_000, silenceMaxMs: 0 };
  const { client, store, when } = await startFake(t, { config, wrap });
  const { session } = await client.create({ prompt: "sim> hang" });
  const kinds = async (): Promise<string[]> =>
    (await client.listTriggers({ for: "person" })).triggers.map((each) => String(each.payload["kind"]));
  await when(async () => (await kinds()).includes("silence"));
  seen[0]!({ kind: "retrying", status: 401, attempt: 3, attemptsMax: 10 });
  await when(async () => {
    const reason = (await store.read.sessions.byId(session.id))?.evidence.reason ?? "";
    return reason.endsWith(": its agent is retrying after 401, attempt 3 of 10");
  });
  assert.deepEqual(await kinds(), ["silence"], "a retry is no sign of life");
  seen[0]!({ kind: "text", text: "here I am" });
  await when(async () => (await kinds()).length === 0);
  assert.equal((await store.read.turns.last(session.id))?.status, "running");
});

test("an agent that waits for an answer is not silent", async (t) => {
  const config = { silenceMs: 500, silenceMaxMs: 1_000 };
  const { client, store, quiet, when } = await startFake(t, { config });
  const { session } = await client.create({ prompt: "sim> ask Which one? | a | b\nsim> say thanks" });
  const trigger = await when(async () => (await store.read.triggers.open({ sessionId: session.id }))[0]);
  await beats(store, 4);
  assert.equal((await store.read.turns.last(session.id))?.status, "running");
  await client.respond({ id: trigger.id, response: "a" });
  assert.equal((await quiet(session.id)).outcome, "completed");
});

test("a running command with a live process is not silence", async (t) => {
  const config = { silenceMs: 500, silenceMaxMs: 1_000 };
  const { client, quiet } = await startFake(t, { config });
  const prompt = "sim> run sleep 5\nsim> say done";
  const { session } = await client.create({ agent: "sim", permission: "full", prompt });
  const ended = await quiet(session.id);
  assert.equal(ended.outcome, "completed", ended.outcomeReason ?? "");
});

test("a running command is not silence although a call beside it has ended", async (t) => {
  const updates = listening();
  const running = withHandles(() => ({ background: async () => true }));
  const config = { silenceMs: 500, silenceMaxMs: 1_000 };
  const { client, store } = await startFake(t, {
    config,
    wrap: (driver) => running(updates.wrap(driver)),
  });
  const { session } = await client.create({ prompt: "sim> hang" });
  await updates.prompted;
  const call = { kind: "toolCall", title: "", input: {} } as const;
  updates.send({ ...call, callId: "1", tool: "Bash" });
  updates.send({ ...call, callId: "2", tool: "Read" });
  updates.send({ kind: "toolResult", callId: "2", tool: "Read", ok: true, text: "", ours: false });
  await beats(store, 4);
  assert.equal((await store.read.turns.last(session.id))?.status, "running");
  assert.deepEqual((await client.listTriggers({ for: "person" })).triggers, []);
});

test("an agent that sends an update while its silence is being checked is not stopped", async (t) => {
  const updates = listening();
  const looking = Promise.withResolvers<void>();
  const looked = Promise.withResolvers<boolean>();
  const slow = withHandles(() => ({
    background() {
      looking.resolve();
      return looked.promise;
    },
  }));
  const config = { silenceMs: 1_000, silenceMaxMs: 1_000 };
  const { client, store, when } = await startFake(t, {
    config,
    wrap: (driver) => slow(updates.wrap(driver)),
  });
  const { session } = await client.create({ prompt: "sim> hang" });
  await updates.prompted;
  updates.send({ kind: "toolCall", callId: "1", tool: "Bash", title: "", input: {} });
  await looking.promise;
  updates.send({ kind: "text", text: "here I am" });
  looked.resolve(false);
  await when(async () => {
    const entries = await store.read.entries.page(session.id, { limit: 100 });
    return entries.some((entry) => entry.body.text === "here I am");
  });
  // A report of the silence would have been written before the text, and before the stop.
  const events = await store.feed.ofTree(session.rootId, 0, 1_000);
  const reports = events.filter(({ data }) => JSON.stringify(data).includes("nothing heard for"));
  assert.deepEqual(reports, []);
  assert.equal((await store.read.turns.last(session.id))?.status, "running");
});

test("a daemon that recovers a turn does not report an earlier silence", async (t) => {
  const resumed = holdAt("end", (point) => point.text?.startsWith("sim> hang") !== true);
  const config = { silenceMs: 1_000, silenceMaxMs: 0 };
  const first = await startFake(t, { config, gate: (point) => resumed.gate(point) });
  const { session } = await first.client.create({ prompt: "sim> hang" });
  await first.when(async () => (await first.client.listTriggers({ for: "person" })).triggers.length === 1);
  await first.stop();
  const { home, driver } = first;
  const { client, store } = await startFake(t, { home, driver });
  await resumed.reached;
  const turn = await store.read.turns.last(session.id);
  assert.deepEqual([turn?.status, turn?.attempt], ["running", 2]);
  assert.deepEqual((await client.listTriggers({ for: "person" })).triggers, []);
  resumed.open();
});

/** Lets a test send updates in place of the agent. */
function listening() {
  let heard: ((update: AgentUpdate) => void) | null = null;
  const prompted = Promise.withResolvers<void>();
  const notice = withHandles((handle) => ({
    prompt(text: string) {
      prompted.resolve();
      return handle.prompt(text);
    },
  }));
  return {
    prompted: prompted.promise,
    send: (update: AgentUpdate): void => heard?.(update),
    wrap: (driver: Driver): Driver =>
      notice({
        ...driver,
        open(request) {
          heard = request.onUpdate;
          return driver.open(request);
        },
      }),
  };
}
