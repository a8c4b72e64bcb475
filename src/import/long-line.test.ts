import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { lay, Transcript } from "../history/readers/claude-code/testing/transcript.ts";
import { Writer } from "../history/readers/opencode/testing/session.ts";
import { startImporting } from "./testing/home.ts";

const MB = 1024 * 1024;
const S = "6f0e8d3a-1111-4222-8333-944445555666";
const T = "7f0e8d3a-1111-4222-8333-944445555666";
const fileOf = (id: string): string => `-w-app/${id}.jsonl`;

describe("a very long line", () => {
  it("of 20 MB is read as any other: a result, and an answer that ends a session", async (t) => {
    const home = await startImporting(t);
    const command = { type: "tool_use", id: "c1", name: "Bash", input: { command: "x" } };
    const result = new Transcript(S)
      .user("Do X")
      .answer([command])
      .result("c1", "y".repeat(20 * MB));
    await lay(home.claude, {
      [fileOf(S)]: result.says("done").endsTurn(),
      [fileOf(T)]: new Transcript(T).user("Do Y").says("z".repeat(20 * MB)),
    });
    await home.import();
    for (const [id, kinds] of [
      [S, ["text", "toolCall", "toolResult", "text"]],
      [T, ["text", "text"]],
    ] as const) {
      const { id: own, evidence } = await home.byAgentId(id);
      assert.equal(evidence.state, "completed");
      assert.deepEqual(
        (await home.entries(own)).map(({ kind }) => kind),
        kinds,
      );
    }
    assert.deepEqual((await home.client.imported({ problems: 10 })).problems, []);
  });

  it("that is longer than what is read makes nothing certain, and is named", async (t) => {
    const home = await startImporting(t);
    const written = new Transcript(S)
      .user("Do X")
      .says("z".repeat(33 * MB))
      .user("More")
      .says("ok")
      .endsTurn();
    await lay(home.claude, { [fileOf(S)]: written });
    await home.import();
    const { evidence } = await home.byAgentId(S);
    assert.deepEqual([evidence.state, evidence.confidence], ["completed", "likely"]);
    assert.match(evidence.reason, /too long to be read/);
    const { problems } = await home.client.imported({ problems: 10 });
    assert.match(problems[0]?.reason ?? "", /line 2 longer than 32 MB/);
  });

  it("of more values than fit into memory is not parsed, and is named", async (t) => {
    const home = await startImporting(t);
    const written = new Transcript(S).user("Do X").says("ok").endsTurn().text();
    const dense = `{"type":"user","message":[${"[],".repeat(10 * MB)}[]]}\n`;
    await lay(home.claude, { [fileOf(S)]: `${dense}${written}${dense}${written}` });
    await home.import();
    const { problems } = await home.client.imported({ problems: 10 });
    assert.match(problems[0]?.reason ?? "", /line 1 longer than 500000 values/);
    const { id, evidence } = await home.byAgentId(S);
    assert.equal(evidence.confidence, "likely");
    assert.equal((await home.entries(id)).length, 2);
  });

  it("in a database makes nothing certain as well, alone or with the other parts of its message", async (t) => {
    const home = await startImporting(t);
    const folder = path.join(home.agents, ".local/share/opencode");
    mkdirSync(folder, { recursive: true });
    const writer = new Writer(path.join(folder, "opencode.db"));
    const text = (megabytes: number) => ({ type: "text", text: "z".repeat(megabytes * MB) });
    for (const [id, parts] of [
      ["ses_alone", [text(33)]],
      ["ses_parts", [text(17), text(17)]],
      ["ses_short", [text(1)]],
    ] as const) {
      writer.session(id);
      writer.message(id, { role: "user" }, parts);
      writer.answer(id, "ok");
    }
    writer.close();
    await home.import();
    for (const [id, confidence] of [
      ["ses_alone", "likely"],
      ["ses_parts", "likely"],
      ["ses_short", "certain"],
    ] as const) {
      const { evidence } = await home.byAgentId(id);
      assert.deepEqual([evidence.state, evidence.confidence], ["completed", confidence], id);
    }
  });
});
