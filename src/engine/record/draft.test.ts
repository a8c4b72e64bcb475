import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { FakePoint } from "../../drivers/fake/driver.ts";
import type { AgentUpdate, Driver } from "../../drivers/port.ts";
import { startFake } from "../testing/fake-daemon.ts";

/** A timer may fire this much early. */
const TIMER_MS = 5;

/** Starts a session whose agent writes what the test gives it. */
async function atWork(t: TestContext, reached: (moment: string) => void = () => undefined) {
  const heard: ((update: AgentUpdate) => void)[] = [];
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    open(request) {
      heard.push(request.onUpdate);
      return driver.open(request);
    },
  });
  const begun = Promise.withResolvers<void>();
  const gate = async ({ at }: FakePoint): Promise<void> => {
    if (at === "begin") begun.resolve();
  };
  const daemon = await startFake(t, { wrap, reached, gate });
  const { session } = await daemon.client.create({ prompt: "sim> sleep 600000" });
  const { store } = daemon;
  await begun.promise;
  const write = (text: string): void => heard[0]!({ kind: "fragment", what: "text", text });
  const end = (text: string): void => heard[0]!({ kind: "text", text });
  const open = async (): Promise<string | null> =>
    (await store.read.drafts.ofSession(session.id))?.body.text ?? null;
  return { ...daemon, id: session.id, write, end, open };
}

test("a message that grows without a pause is written at most once a second", async (t) => {
  let isGrowing = false;
  const writtenAt: number[] = [];
  const { write, open } = await atWork(t, (moment) => {
    if (isGrowing && moment === "entries.appended") writtenAt.push(performance.now());
  });
  isGrowing = true;
  const since = performance.now();
  while (writtenAt.length < 3) {
    write("another word ");
    await pause(10);
  }
  assert.ok((await open())?.startsWith("another word another"));
  // The test sees a write late, never early. So the third one is seen two seconds after the beginning or later.
  const thirdMs = writtenAt[2]! - since;
  assert.ok(thirdMs >= 2_000 - TIMER_MS, `the third write came after ${thirdMs} ms`);
});

test("a message that has ended is stored only as its entry, while its turn continues", async (t) => {
  const { write, end, open, when, store, id } = await atWork(t);
  write("All of it.");
  await when(async () => (await open()) === "All of it.");
  end("All of it.");
  const entries = await when(async () => {
    const page = await store.read.entries.page(id, { limit: 100 });
    return page.some(({ author }) => author === "agent") && page;
  });
  assert.equal(await open(), null);
  assert.deepEqual(
    entries.filter(({ author }) => author === "agent").map(({ body }) => body),
    [{ text: "All of it." }],
  );
  assert.equal((await store.read.turns.last(id))?.status, "running");
});

test("an orderly stop keeps the text that came after the last write of an open message", async (t) => {
  const { write, open, when, stop, home, id } = await atWork(t);
  write("The first words, ");
  await when(async () => (await open()) !== null);
  write("and the last one is x86_64");
  await stop();
  const again = await startFake(t, { home });
  const { entries } = await again.client.entries({ id, limit: 100 });
  await again.stop();
  const said = entries.filter(({ author }) => author === "agent").map(({ body }) => [body.text, body.cut]);
  assert.deepEqual(said, [["The first words, and the last one is x86_64", true]]);
});

test("a turn that ends before its message did keeps the message as far as it came, marked cut", async (t) => {
  const { write, open, when, client, quiet, id } = await atWork(t);
  write("The first words, ");
  await when(async () => (await open()) !== null);
  write("and the last one is x86_64");
  await client.cancel({ id, turnOnly: true });
  await quiet(id);
  const { entries } = await client.entries({ id, limit: 100 });
  const said = entries.filter(({ author }) => author === "agent").map(({ body }) => [body.text, body.cut]);
  assert.deepEqual(said, [["The first words, and the last one is x86_64", true]]);
  assert.equal(await open(), null);
});
