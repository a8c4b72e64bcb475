import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { attackYaml } from "./support/attacks.ts";
import { type Client, TestHome } from "./support/daemon.ts";

function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Calls `begin` and resolves after `count` events of this type. */
async function eventsOf(
  client: Client,
  awaited: { type: string; count: number },
  begin: () => Promise<void>,
): Promise<void> {
  const { type, count } = awaited;
  let seen = 0;
  for await (const item of client.events({})) {
    if (item.type === "open") await begin();
    if (item.type === "event" && item.event.type === type) seen += 1;
    if (seen === count) return;
  }
}

test("four times as many open requests cost about four times as much", async () => {
  const home = new TestHome({ yaml: attackYaml("limits:\n  requestsMax: 1000\n") });
  try {
    const client = await home.start();
    const cost = async (count: number): Promise<number> => {
      const before = cpuMsOf(home.pid);
      let id = "";
      await eventsOf(client, { type: "trigger.opened", count }, async () => {
        const prompt = `asks ${count}`;
        id = (await client.create({ agent: "attack", cwd: home.work, prompt })).session.id;
      });
      await client.cancel({ id });
      return cpuMsOf(home.pid) - before;
    };
    await cost(10);
    const [few, many] = [await cost(240), await cost(960)];
    assert.ok(many < 6 * few, `240 cost ${few} ms, 960 cost ${many} ms`);
  } finally {
    await home.close();
  }
});
