import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { ProcessProbe } from "../../port.ts";
import { readAll } from "../../reader.spec.ts";
import { claudeCode } from "./index.ts";
import { agent, families, shapeOf } from "./testing/transcript.ts";

const root = fileURLToPath(new URL("testing/fixtures", import.meta.url));

/** Simulates the process that the recorded registry names; null means that the process is gone. */
const probe = (start: string | null): ProcessProbe => ({
  startOf: () => start,
  space: () => null,
  exists: () => start !== null,
  holders: async () => new Map(),
});

const SYNC = "aa1ad308-19af-49e8-ad7c-a0e4552c8ff8";
const BACKGROUND = "46dac7ab-c438-4b4f-8fcc-69051aa3f55b";
const STOPPED = "dd49f441-58ee-4356-b0bb-211157029e1c";
const KILLED = "c35d0933-71bd-4893-9847-8f7a013b5cb2";

describe("what Claude Code 2.1.325 left on disk", () => {
  it("foreground sub-agents: one completed, one failed, one nested in another", async () => {
    const family = (await families(root)).get(SYNC);
    assert.ok(family);
    assert.deepEqual(shapeOf(family), [
      "1 a8c0a5f20e855e9ca toolu_b5956304a9b142f3a2 completed certain",
      "1 a9807a7b0dc6809e8 toolu_60fd1ff63f160b030f failed certain",
      "1 aab790d9199f435e8 toolu_c7dbda6c90e1ff7a46 completed certain",
      "2 a00c991044c5544aa toolu_e0bcb9e2ed4ad61a0c completed certain",
    ]);
    assert.equal(family.judgement?.state, "completed");
    assert.match(agent(family, "a9807a7b0dc6809e8").status.error ?? "", /400 scripted hard failure/);
    const nested = agent(family, "a00c991044c5544aa");
    assert.equal(nested.status.parentAgentId, "aab790d9199f435e8");
    assert.equal(nested.status.description, "nested child");
    const [byCall] = family.byCall.get("toolu_e0bcb9e2ed4ad61a0c") ?? [];
    assert.equal(byCall, nested, "the call leads to the sub-agent, and the sub-agent to the call");
    assert.ok((agent(family, "a8c0a5f20e855e9ca").status.durationMs ?? 0) > 0);
    assert.ok((agent(family, "a8c0a5f20e855e9ca").status.tokens ?? 0) > 0);
  });

  it("background sub-agents: their ends are reported later, and the parent is done after both", async () => {
    const family = (await families(root)).get(BACKGROUND);
    assert.ok(family);
    // The recording cuts off the end of each notification. What is left shows that a sub-agent stopped. Only
    // the sub-agent's file shows how.
    assert.deepEqual(shapeOf(family), [
      "1 a5779b4d11b8978c0 toolu_5704befcc9f959221a completed likely",
      "1 a1208d5100e74fae7 toolu_70552bbe160f23bfa6 failed likely",
    ]);
    assert.equal(family.judgement?.state, "completed");
    assert.match(agent(family, "a1208d5100e74fae7").status.error ?? "", /400 scripted hard failure/);
  });

  it("a sub-agent that its parent stopped is cancelled, and the parent completed", async () => {
    const family = (await families(root)).get(STOPPED);
    assert.ok(family);
    assert.deepEqual(shapeOf(family), ["1 a2f835403c0c01c5a toolu_9f3fbdfa483f0cb4c3 cancelled certain"]);
    assert.equal(family.judgement?.state, "completed");
  });

  it("a killed session is interrupted, whatever the age of its file", async () => {
    const listed = await claudeCode.live(root, probe(null));
    const family = (await families(root, { listed })).get(KILLED);
    assert.ok(family);
    assert.deepEqual(shapeOf(family), ["1 a2df26c186ed090a6 toolu_82604a63c1b83b0c1a interrupted certain"]);
    assert.equal(family.judgement?.state, "interrupted");
    assert.match(family.judgement?.reason ?? "", /process 32100 is gone/);
  });

  it("the same session and its sub-agent are running while their process is alive", async () => {
    const listed = await claudeCode.live(root, probe("319447"));
    const family = (await families(root, { listed })).get(KILLED);
    assert.ok(family);
    assert.deepEqual(shapeOf(family), ["1 a2df26c186ed090a6 toolu_82604a63c1b83b0c1a running likely"]);
    assert.deepEqual([family.judgement?.state, family.judgement?.confidence], ["running", "certain"]);
  });

  it("another process with the same pid proves nothing", async () => {
    const listed = await claudeCode.live(root, probe("999999"));
    assert.equal((await families(root, { listed })).get(KILLED)?.judgement?.state, "interrupted");
  });

  it("entries have their true authors, and a notification in three rows is one entry", async () => {
    const found = await Array.fromAsync(claudeCode.discover(root, () => undefined));
    const stopped = found.find(({ id }) => id === STOPPED);
    assert.ok(stopped);
    const { entries, state } = await readAll(claudeCode, stopped);
    const kinds = entries.map(({ author, kind }) => `${author} ${kind}`);
    assert.deepEqual(kinds, [
      "person text",
      "agent toolCall",
      "tool toolResult",
      "agent toolCall",
      "tool toolResult",
      "agent toolCall",
      "tool toolResult",
      "agent toolCall",
      "session callback",
      "tool toolResult",
      "agent text",
    ]);
    assert.deepEqual(
      [
        state.facts.title,
        state.facts.firstPrompt,
        state.facts.cwd,
        state.facts.model,
        state.facts.agentVersion,
      ],
      [null, "PARENT-STOP", "/tmp/agent/work", "claude-opus-5-5", "2.1.325"],
    );
    assert.deepEqual(state.facts.usage, { inputTokens: 500, cachedTokens: 0, outputTokens: 50, usd: 0.0036 });
    const child = found.find(({ id }) => id === "a2f835403c0c01c5a");
    assert.ok(child);
    const inside = await readAll(claudeCode, child);
    assert.ok(inside.entries.every(({ isSubagent }) => isSubagent));
    assert.equal(inside.entries[0]?.author, "session");
    assert.equal(inside.state.facts.rootId, STOPPED);
  });
});
