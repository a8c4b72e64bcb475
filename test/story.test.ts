import assert from "node:assert/strict";
import test from "node:test";
import { TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants } from "./support/family.ts";

test("three generations: every callback arrives once, in order, as the next turn of an idle parent", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const grandchild = (name: string): string =>
      `sim> tool spawn_session ${JSON.stringify({ name, prompt: `sim> sleep 150\nsim> say ${name} done` })}`;
    const middle = [grandchild("lint"), grandchild("types"), "sim> say middle waits"].join("\n");
    const child = (name: string, prompt: string): string =>
      `sim> tool spawn_session ${JSON.stringify({ name, prompt })}`;
    const prompt = [
      child("tests", middle),
      child("docs", "sim> sleep 300\nsim> say docs done"),
      child("perf", "sim> say perf done"),
      "sim> say all started",
    ].join("\n");
    const { session: root } = await client.create({ name: "release", cwd: home.work, prompt });
    const sessions = await allQuiet(client, root.id);
    assert.equal(sessions.length, 6);
    assert.deepEqual(new Set(sessions.map((each) => each.outcome)), new Set(["completed"]));
    assert.deepEqual(new Set(sessions.map((each) => each.depth)), new Set([0, 1, 2]));
    await checkInvariants(client, root.id);

    const told = await callbacksTo(client, root.id);
    assert.equal(told.length, 3);
    for (const name of ["tests", "docs", "perf"]) {
      assert.equal(told.filter((each) => each.text.includes(`Child "${name}"`)).length, 1);
    }
    const { turns } = await client.turns({ id: root.id });
    assert.equal(turns.length, 4, "one turn for the prompt and one for each callback");
    assert.ok(turns.every((turn) => turn.status === "completed" && turn.messageIds.length === 1));
    const tests = sessions.find((each) => each.name === "tests")!;
    assert.equal((await callbacksTo(client, tests.id)).length, 2);
    const { messages } = await client.inbox({ id: root.id, all: true });
    const callbacks = messages.filter((message) => message.kind === "callback");
    const order = callbacks.map((message) => message.position);
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    );
    assert.ok(callbacks.every((message) => message.status === "landed"));
  } finally {
    await home.close();
  }
});
