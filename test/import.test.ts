import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import { Transcript } from "../src/history/readers/claude-code/testing/transcript.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";

const FAMILIES = 24;
const SUBAGENTS = 3;
const ANSWERS = 60;
const LONG = "some words of an answer that has to be long enough to take a while ".repeat(30);

function idOf(family: number): string {
  return `${String(family).padStart(8, "0")}-1111-4222-8333-944445555666`;
}

function agentOf(family: number, number: number): string {
  return `a${family}x${number}`;
}

/** Writes enough transcripts that a daemon can be killed in the middle of the import. */
function layMany(work: string): void {
  const projects = path.join(work, ".claude", "projects", "-w-app");
  for (let family = 0; family < FAMILIES; family += 1) {
    const id = idOf(family);
    const calls = Array.from({ length: SUBAGENTS }, (_, i) => ({
      id: `toolu_${family}_${i}`,
      prompt: `part ${family} ${i}`,
    }));
    const main = new Transcript(id).user(`Family ${family}`).spawns(...calls);
    const folder = path.join(projects, id, "subagents");
    mkdirSync(folder, { recursive: true });
    for (const [i, { prompt }] of calls.entries()) {
      const child = new Transcript(id, { agentId: agentOf(family, i) }).user(prompt);
      for (let answer = 0; answer < ANSWERS; answer += 1) child.says(`${answer} ${LONG}`, null);
      writeFileSync(path.join(folder, `agent-${agentOf(family, i)}.jsonl`), child.text());
    }
    for (let answer = 0; answer < ANSWERS; answer += 1) main.says(`${answer} ${LONG}`, null);
    writeFileSync(path.join(projects, `${id}.jsonl`), main.text());
  }
}

async function done(client: Client): Promise<void> {
  await eventually("everything is read", async () => (await client.imported({})).scan.phase === "watching");
}

/** Returns the entries of every imported session in order. The keys are the agents' session ids. */
async function allEntries(client: Client): Promise<Record<string, string[]>> {
  const { sessions } = await client.list({ origin: "imported", limit: 500 });
  const all: Record<string, string[]> = {};
  for (const { id, agentSessionId } of sessions) {
    const { entries, total } = await client.entries({ id, limit: 1000 });
    assert.equal(entries.length, total);
    all[agentSessionId ?? ""] = entries.map(
      ({ index, body }) => `${index} ${body.callId ?? ""} ${body.text}`,
    );
  }
  return all;
}

async function opened(t: TestContext): Promise<TestHome> {
  const home = new TestHome();
  t.after(() => home.close());
  layMany(home.work);
  return home;
}

describe("an import that is cut", () => {
  it("by kill -9, again and again, ends with every entry once and in its order", async (t) => {
    const calm = await opened(t);
    const undisturbed = await calm.start();
    await undisturbed.import({});
    await done(undisturbed);
    const expected = await allEntries(undisturbed);
    assert.equal(Object.keys(expected).length, FAMILIES * (1 + SUBAGENTS));

    const home = await opened(t);
    let client = await home.start();
    await client.import({});
    let cuts = 0;
    for (const part of [0.05, 0.3, 0.6]) {
      await eventually(`${part} of it is read`, async () => {
        const { scan } = await client.imported({});
        return scan.phase === "watching" || (scan.bytes > 0 && scan.bytesRead / scan.bytes >= part);
      });
      if ((await client.imported({})).scan.phase !== "watching") cuts += 1;
      await home.kill();
      client = await home.start();
    }
    await done(client);
    assert.ok(cuts > 0, "it was cut in the middle");
    assert.deepEqual(await allEntries(client), expected);
  });

  it("does not keep the daemon from answering or from going down", async (t) => {
    const home = await opened(t);
    const client = await home.start();
    await client.import({});
    await eventually("it reads", async () => (await client.imported({})).scan.phase === "reading");
    assert.equal((await client.health({})).ok, true);
    await home.stop();
    const again = await home.start();
    await done(again);
    const { sessions } = await again.list({ origin: "imported", limit: 500 });
    assert.equal(sessions.length, FAMILIES * (1 + SUBAGENTS));
  });
});
