import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentHandle } from "../../drivers/port.ts";
import { holdAt, startFake, withHandles } from "../testing/fake-daemon.ts";

test("a message steered while the agent ends its prompt is not lost: it is the next turn", async (t) => {
  const end = holdAt("end", (point) => point.text?.includes("first") === true);
  const steering = Promise.withResolvers<void>();
  const wrap = withHandles((handle) => ({
    // The agent answers its prompt before it handles the message, and then refuses the message.
    async steer(): Promise<"refused"> {
      end.open();
      await steering.promise;
      return "refused";
    },
    prompt: (text: string) => {
      const ended = handle.prompt(text);
      void ended.then(() => setImmediate(() => steering.resolve()));
      return ended;
    },
  }));
  const { client, store, quiet, when } = await startFake(t, { gate: (point) => end.gate(point), wrap });
  const { session } = await client.create({ prompt: "sim> say first" });
  await end.reached;
  await client.prompt({ id: session.id, prompt: "sim> say second", delivery: "steer" });
  await when(async () => (await store.read.turns.last(session.id))?.index === 1);
  await quiet(session.id);
  const { entries } = await client.entries({ id: session.id, limit: 100 });
  const said = entries.filter((entry) => entry.author === "agent").map((entry) => entry.body.text);
  assert.deepEqual(said, ["first", "second"]);
  const steered = await store.read.messages.ofSession(session.id, ["landed"]);
  const written = entries.filter((entry) => entry.body.messageId === steered.at(-1)?.id);
  assert.equal(written.length, 1, "it is in the transcript once, where the agent took it");
  assert.equal(written[0]?.turnId, (await store.read.turns.last(session.id))?.id);
});

test("a steer that is never acknowledged does not delay the turn's end, and is sent again, marked", async (t) => {
  const end = holdAt("end", (point) => point.text?.includes("first") === true);
  const wrap = withHandles((): Partial<AgentHandle> => ({
    async steer() {
      end.open();
      return new Promise(() => undefined);
    },
  }));
  const { client, store, quiet, when } = await startFake(t, { gate: (point) => end.gate(point), wrap });
  const { session } = await client.create({ prompt: "sim> say first" });
  await end.reached;
  await client.prompt({ id: session.id, prompt: "sim> say second", delivery: "steer" });
  await when(async () => (await store.read.turns.last(session.id))?.index === 1);
  await quiet(session.id);
  const messages = await store.read.messages.ofSession(session.id, ["landed"]);
  assert.deepEqual(
    messages.map(({ kind, carrier, repeated }) => [kind, carrier, repeated]),
    [
      ["prompt", "prompt", false],
      ["prompt", "prompt", true],
    ],
  );
});

test("a steer that is refused after its turn has ended is not taken out of the turn that has it now", async (t) => {
  const first = holdAt("end", (point) => point.text?.includes("first") === true);
  const second = holdAt("end", (point) => point.text?.includes("second") === true);
  const refusal = Promise.withResolvers<"refused">();
  const wrap = withHandles((): Partial<AgentHandle> => ({
    async steer() {
      first.open();
      return refusal.promise;
    },
  }));
  const gate = async (point: Parameters<typeof first.gate>[0]): Promise<void> => {
    await first.gate(point);
    await second.gate(point);
  };
  const { client, store, quiet, when } = await startFake(t, { gate, wrap });
  const { session } = await client.create({ prompt: "sim> say first" });
  await first.reached;
  await client.prompt({ id: session.id, prompt: "sim> say second", delivery: "steer" });
  await second.reached;
  refusal.resolve("refused");
  const ofSecond = async () => (await store.read.messages.ofSession(session.id, ["queued", "taken"]))[0];
  await when(async () => (await ofSecond())?.metadata["delivered"] === "queued");
  assert.equal((await ofSecond())?.status, "taken");
  second.open();
  await quiet(session.id);
  const { entries } = await client.entries({ id: session.id, limit: 100 });
  const said = entries.filter((entry) => entry.author === "agent").map((entry) => entry.body.text);
  assert.equal(said.length, 2, said.join("\n"));
});
