import assert from "node:assert/strict";
import { test } from "node:test";
import { attackYaml } from "./support/attacks.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";

async function openRequests(client: Client): Promise<number> {
  return (await client.listTriggers({ for: "person" })).triggers.length;
}

test("of a flood of permission requests 32 wait for an answer, the rest is denied, and cancel works", async () => {
  const home = new TestHome({ yaml: attackYaml() });
  try {
    const client = await home.start();
    const { session } = await client.create({ agent: "attack", cwd: home.work, prompt: "asks 1000" });
    const denied = await eventually("the rest is denied", async () => {
      const { entries } = await client.entries({ id: session.id, limit: 1000 });
      const notices = entries.filter((each) => each.body.text.includes("further requests are denied"));
      return notices.length > 0 ? notices : undefined;
    });
    assert.equal(denied.length, 1);
    assert.equal(await openRequests(client), 32);
    const { left } = await client.cancel({ id: session.id });
    assert.deepEqual(left, []);
    assert.equal(await openRequests(client), 0);
  } finally {
    await home.close();
  }
});
