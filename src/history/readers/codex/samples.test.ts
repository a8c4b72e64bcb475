import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { before, describe, it } from "node:test";
import { type Read, readRoot } from "./testing/made.ts";

const recorded = fileURLToPath(new URL("testing/fixtures", import.meta.url));
const DONE = "01a1e0a9-e8eb-7e32-b6ff-da3ee8df1b8b";
const OK = "01a1e0a9-e999-74b1-b638-8e82e069f236";
const FAILED = "01a1e0a9-ea85-70d1-97d6-b7f810bf3fb4";
const KILLED = "01a1e0a9-ec43-7090-8409-f7283d090e21";
const HUNG = "01a1e0a9-ed1c-7e60-b554-de3f4fa47c9c";

describe("what Codex itself recorded", () => {
  let read: Read;
  before(async () => {
    read = await readRoot(recorded);
  });

  it("a session that waited for two sub-agents is completed, one of them completed and one failed", async () => {
    const family = await read.family(DONE);
    assert.equal(family.judgement?.state, "completed");
    assert.equal(family.judgement?.confidence, "certain");
    const rows = family.agents.map(({ status, parentKey }) => ({ ...status, parentKey }));
    assert.deepEqual(
      rows.map(({ agentId, state, toolUseId, depth, error }) => ({
        agentId,
        state,
        toolUseId,
        depth,
        error,
      })),
      [
        { agentId: OK, state: "completed", toolUseId: "call_90781c5b62d95eb39b", depth: 1, error: null },
        {
          agentId: FAILED,
          state: "failed",
          toolUseId: "call_ae21769719e2c5f02f",
          depth: 1,
          error: "scripted hard failure in a subagent",
        },
      ],
    );
    assert.ok(
      rows.every(({ parentKey, confidence }) => parentKey === `codex:${DONE}` && confidence === "certain"),
    );
    assert.deepEqual(
      family.byCall.get("call_90781c5b62d95eb39b")?.map(({ status }) => status.agentId),
      [OK],
    );
  });

  it("a session that was killed is interrupted, and so is the sub-agent it waited for", async () => {
    const family = await read.family(KILLED);
    assert.equal(family.judgement?.state, "interrupted");
    assert.deepEqual(
      family.agents.map(({ status }) => [status.agentId, status.state, status.toolUseId]),
      [[HUNG, "interrupted", "call_98952cc8786dfab272"]],
    );
  });

  it("model, folder, version and usage are those of the session itself", () => {
    const facts = read.readings.get(DONE)?.state.facts;
    assert.equal(facts?.model, "gpt-5.5");
    assert.equal(facts?.cwd, "/tmp/agent/work");
    assert.equal(facts?.agentVersion, "0.166.0");
    assert.deepEqual(facts?.usage, { inputTokens: 900, cachedTokens: 0, outputTokens: 90, usd: null });
    assert.equal(facts?.firstPrompt, "PARENT-SYNC");
    assert.equal(read.readings.get(OK)?.state.facts.rootId, DONE);
  });

  it("a person asks a session, a session asks its sub-agent, and neither wrote the context", () => {
    const authors = (id: string) =>
      read.readings
        .get(id)
        ?.entries.flatMap(({ author, kind, body }) =>
          kind === "text" || kind === "notice" || kind === "callback"
            ? [[author, kind, body.text.slice(0, 21)]]
            : [],
        );
    assert.deepEqual(authors(DONE), [
      ["agent", "notice", "<environment_context>"],
      ["person", "text", "PARENT-SYNC"],
      ["agent", "text", "Spawning."],
      ["session", "callback", "CHILD REPORT: done"],
      ["session", "callback", "scripted hard failure"],
      ["agent", "text", 'PARENT DONE: {"previo'],
    ]);
    assert.deepEqual(authors(OK)?.[1], ["session", "text", "CHILD-OK please"]);
    const command = read.readings.get(OK)?.entries.find(({ kind }) => kind === "toolResult")?.body;
    assert.equal(command?.exitCode, 0);
    assert.equal(command?.command, "echo child-output");
  });
});
