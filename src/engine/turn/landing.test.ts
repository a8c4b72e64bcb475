import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentHandle, Driver } from "../../drivers/port.ts";
import { startFake, withHandles } from "../testing/fake-daemon.ts";

/** An agent that cannot load conversations, so nothing shows what it had received. */
const forgetful = (driver: Driver): Driver => ({
  ...driver,
  probe: async () => ({ ...(await driver.probe()), load: false }),
});

test("a prompt whose agent died without a sign and cannot be asked is void with the reason, not landed", async (t) => {
  const { client, store, quiet } = await startFake(t, { wrap: forgetful });
  const { session } = await client.create({ prompt: "sim> crash" });
  assert.equal((await quiet(session.id)).outcome, "failed");
  const [message] = await store.read.messages.ofSession(session.id, ["void"]);
  assert.match(message?.voidReason ?? "", /^it may have reached the agent/);
});

test("a prompt whose agent had begun to work on it before it died has landed", async (t) => {
  const { client, store, quiet } = await startFake(t, { wrap: forgetful });
  const { session } = await client.create({ prompt: "sim> say begun\nsim> crash" });
  assert.equal((await quiet(session.id)).outcome, "failed");
  const messages = await store.read.messages.ofSession(session.id, ["landed"]);
  assert.equal(messages.length, 1);
});

test("a steered message that its agent acknowledged before it died, and of which nothing is known, is not repeated", async (t) => {
  const dying = withHandles((handle): Partial<AgentHandle> => ({
    async steer() {
      setImmediate(() => void handle.stop(0));
      return "injected";
    },
  }));
  const { client, store, quiet, when } = await startFake(t, { wrap: (driver) => dying(forgetful(driver)) });
  const { session } = await client.create({ prompt: "sim> say begun\nsim> hang" });
  await when(async () => (await store.read.sessions.byId(session.id))?.agentSessionId !== null);
  await client.tell({ id: session.id, message: "sim> say told" });
  assert.equal((await quiet(session.id)).outcome, "failed");
  const messages = await store.read.messages.ofSession(session.id, ["landed", "void"]);
  assert.deepEqual(
    messages.map(({ kind, status }) => [kind, status]),
    [
      ["prompt", "landed"],
      ["tell", "void"],
    ],
  );
});
