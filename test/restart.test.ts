import assert from "node:assert/strict";
import test from "node:test";
import { sendSignal } from "../src/system/proc.ts";
import { eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants } from "./support/family.ts";
import { gate, openGate, script, spawnStep } from "./support/script.ts";

test("a daemon that goes down in order leaves its turns open, and the next one goes on with them", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const kid = spawnStep({ name: "kid", prompt: script(gate("kid"), "say kid done") });
    const prompt = script(kid, gate("root"), "say root done");
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
    await eventually("both run", async () => {
      const { sessions } = await client.tree({ id: root.id });
      return sessions.length === 2 && sessions.every((each) => each.status === "running");
    });
    await home.stop();
    assert.deepEqual(home.agents(), [], "no agent outlives an orderly end");
    const again = await home.start();
    for (const name of ["kid", "root"]) openGate(home.work, name);
    const sessions = await allQuiet(again, root.id);
    assert.deepEqual(
      sessions.map((each) => each.outcome),
      ["completed", "completed"],
    );
    await checkInvariants(again, root.id);
    assert.equal((await callbacksTo(again, root.id)).length, 1);
    const { turns } = await again.turns({ id: root.id });
    assert.equal(turns.at(-1)!.attempt, 2);
  } finally {
    await home.close();
  }
});

test("an idle agent whose process was killed by somebody is started anew for the next message", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const { session } = await client.create({ name: "root", cwd: home.work, prompt: "hello" });
    await allQuiet(client, session.id);
    const stop = new AbortController();
    const events = client.events({ tree: session.id, signal: stop.signal });
    for await (const item of events) {
      if (item.type === "open") for (const { pid } of home.agents()) sendSignal(pid, "SIGKILL");
      if (item.type === "event" && item.event.type === "agent.exited") break;
    }
    stop.abort();
    await client.prompt({ id: session.id, prompt: "once more" });
    await allQuiet(client, session.id);
    const { session: after } = await client.get({ id: session.id });
    assert.equal(after.outcome, "completed");
    const { text } = await client.transcript({ id: session.id });
    assert.match(text, /sim: once more/);
  } finally {
    await home.close();
  }
});
