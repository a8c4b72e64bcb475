import assert from "node:assert/strict";
import test from "node:test";
import { eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants } from "./support/family.ts";

test("a daemon that goes down in order leaves its turns open, and the next one goes on with them", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const kid = JSON.stringify({ name: "kid", prompt: "sim> sleep 1500\nsim> say kid done" });
    const prompt = `sim> tool spawn_session ${kid}\nsim> sleep 1000\nsim> say root done`;
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
    await eventually("both run", async () => {
      const { sessions } = await client.tree({ id: root.id });
      return sessions.length === 2 && sessions.every((each) => each.status === "running");
    });
    await home.stop();
    assert.deepEqual(home.agents(), [], "no agent outlives an orderly end");
    const again = await home.start();
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
      if (item.type === "open") for (const { pid } of home.agents()) killed(pid);
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

/**
 * Returns false if the process is already gone. In a sandbox, the death of the first process ends the others.
 */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    return false;
  }
}
