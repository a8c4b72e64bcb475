import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Store } from "../../store/port/store.ts";
import { aroundWrites } from "../../store/testing/around-writes.ts";
import { holdAt, startFake } from "../testing/fake-daemon.ts";

class Undone extends Error {}

/** Runs every write, rolls it back and runs it again, as the PostgreSQL store does when two writes conflict. */
function everyWriteTwice(store: Store): void {
  aroundWrites(store, async (_, work, write) => {
    await write(async (tx) => {
      await work(tx);
      throw new Undone();
    }).catch((error: unknown) => {
      if (!(error instanceof Undone)) throw error;
    });
    return write(work);
  });
}

/**
 * Runs a family of sessions through a spawn, a callback, a steer, a stop and a cancel. Returns everything
 * that happened, in order.
 */
async function story(t: TestContext, isTwice: boolean): Promise<unknown> {
  const root = holdAt("end", (point) => point.text?.startsWith("sim> say the root") === true);
  const { client, store, quiet, when } = await startFake(t, { gate: (point) => root.gate(point) });
  if (isTwice) everyWriteTwice(store);
  const { session } = await client.create({ name: "root", prompt: "sim> say the root" });
  await root.reached;
  const { session: child } = await client.spawn({ id: session.id, name: "child", prompt: "sim> say child" });
  await quiet(child.id);
  await client.tell({ id: session.id, message: "sim> say steered", deliverAs: "steer" });
  root.open();
  await quiet(session.id);
  const { session: second } = await client.spawn({ id: session.id, name: "second", prompt: "sim> hang" });
  await when(() => store.read.turns.running(second.id));
  await client.cancel({ id: second.id, turnOnly: true });
  await quiet(session.id);
  await client.cancel({ id: session.id });
  await when(async () => (await store.read.leases.ofNode(store.node)).length === 0);
  const events = await store.feed.ofTree(session.id, 0, 1_000);
  const names = new Map([session, child, second].map(({ id, name }) => [id, name]));
  const happened = events.filter(({ type }) => type !== "agent.exited" && type !== "entry.appended");
  const inbox = await store.read.messages.ofSession(session.id, ["queued", "taken", "landed", "void"]);
  return {
    events: Object.groupBy(
      happened.map(({ sessionId, type }) => `${names.get(sessionId)} ${type}`),
      (line) => line.split(" ")[0]!,
    ),
    inbox: inbox.map(({ kind, status, carrier, position }) => ({ kind, status, carrier, position })),
    rows: (await store.read.sessions.tree(session.id)).map(
      ({ name, round, outcome, turnCount, positionCount, messageCount, fence }) => ({
        name,
        round,
        outcome,
        turnCount,
        positionCount,
        messageCount,
        fence,
      }),
    ),
  };
}

test("a write that is rolled back and repeated has the same result as one that is not", async (t) => {
  assert.deepEqual(await story(t, true), await story(t, false));
});
