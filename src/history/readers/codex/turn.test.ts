import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { discoverAll, readAll, type Reading } from "../../reader.spec.ts";
import { codex } from "./index.ts";
import {
  answer,
  call,
  event,
  idAt,
  item,
  meta,
  output,
  prompt,
  type Row,
  row,
  turn,
  writeRollout,
} from "./testing/made.ts";

const ID = idAt(0, "turns");

describe("the turns of a Codex session", () => {
  let folder: string;
  before(async () => {
    folder = await fs.mkdtemp(join(tmpdir(), "kinfold-codex-"));
  });
  after(() => fs.rm(folder, { recursive: true, force: true }));
  const read = async (rows: readonly Row[], fields: Row = {}): Promise<Reading> => {
    const root = await fs.mkdtemp(join(folder, "root-"));
    await writeRollout(root, ID, [meta(0, ID, fields), ...rows]);
    const [found] = await discoverAll(codex, root);
    assert.ok(found);
    return readAll(codex, found);
  };
  const one = (second: number, words: string): Row[] =>
    turn(second, [...prompt(second, words), answer(second + 1, `${words}: done`)]);

  it("rolled back are left behind, and what follows is on the path again", async () => {
    const rows = [
      ...one(1, "One"),
      ...one(20, "Two"),
      ...one(40, "Three"),
      event(60, "thread_rolled_back", { num_turns: 2 }),
      ...one(70, "Four"),
    ];
    const { entries, leftBehind } = await read(rows);
    const refOf = (text: string): string | undefined => entries.find(({ body }) => body.text === text)?.ref;
    assert.deepEqual(leftBehind, [
      {
        inlineId: null,
        afterRef: refOf("One: done"),
        beforeRef: refOf("The last 2 turns were rolled back"),
        reason: "the agent rolled it back",
      },
    ]);
    const again = await read([...rows, event(90, "thread_rolled_back", { num_turns: 99 })]);
    assert.equal(again.leftBehind[1]?.afterRef, null, "more turns than there were are all of them");
  });

  it("decide the session's state, and only the last of them does", async () => {
    const kindOf = async (rows: readonly Row[]) => (await read(rows)).state.facts.ending;
    const begun = event(30, "task_started", { turn_id: "t3" });
    assert.equal((await kindOf(one(1, "One"))).kind, "ended");
    assert.equal((await kindOf([...one(1, "One"), begun])).kind, "working");
    assert.equal((await kindOf([...one(1, "One"), begun, ...one(40, "Two")])).kind, "ended");
    const aborted = event(31, "turn_aborted", { turn_id: "t3", reason: "replaced" });
    assert.equal((await kindOf([begun, aborted])).kind, "interrupted");
    const failed = await kindOf(turn(1, [], { last_agent_message: null, error: { message: "quota" } }));
    assert.deepEqual([failed.kind, failed.error, failed.confirmed], ["failed", "quota", true]);
    const late = [begun, event(32, "task_complete", { turn_id: "another", last_agent_message: "x" })];
    assert.equal((await kindOf(late)).kind, "working", "the end of another turn is not this one's");
  });

  it("of versions that wrote no ends are judged by the last row", async () => {
    const kindOf = async (rows: readonly Row[]) => (await read(rows)).state.facts.ending.kind;
    const asked = prompt(1, "Go");
    const called = call(2, "c", "shell", { command: ["ls"] });
    assert.equal(await kindOf([]), "empty");
    assert.equal(await kindOf(asked), "prompted");
    assert.equal(await kindOf([...asked, called]), "working");
    assert.equal(await kindOf([...asked, called, output(3, "c", "ok")]), "working");
    assert.equal(await kindOf([...asked, called, output(3, "c", "ok"), answer(4, "Done.")]), "ended");
    assert.equal(await kindOf([...asked, answer(4, "Wait", { phase: "commentary" })]), "working");
    assert.equal(await kindOf([...asked, event(3, "error", { message: "broken" })]), "failed");
    assert.equal(
      await kindOf([...asked, event(3, "turn_aborted", { reason: "interrupted" })]),
      "interrupted",
    );
  });

  it("compacted stay, and a notice says that they were", async () => {
    const rows = [
      ...one(1, "One"),
      row(20, "compacted", { message: "What was said", replacement_history: [] }),
    ];
    const { entries } = await read([...rows, event(20, "context_compacted")]);
    assert.deepEqual(
      entries.map(({ kind, body }) => [kind, body.text]),
      [
        ["text", "One"],
        ["text", "One: done"],
        ["notice", "The conversation so far was compacted:\nWhat was said"],
      ],
    );
  });

  it("use the tokens of the running total, and a fork only those after the fork", async () => {
    const count = (second: number, input: number, cached: number, output_tokens: number): Row => {
      const usage = { input_tokens: input, cached_input_tokens: cached, output_tokens };
      return event(second, "token_count", { info: { total_token_usage: usage, last_token_usage: usage } });
    };
    const none = event(2, "token_count", { info: null });
    const plain = await read([...one(1, "One"), none, count(12, 100, 60, 5), count(13, 300, 160, 9)]);
    const used = { inputTokens: 140, cachedTokens: 160, outputTokens: 9, usd: null };
    assert.deepEqual(plain.state.facts.usage, used);
    const copied = [meta(0, idAt(-50, "else")), ...one(-40, "Before"), count(-30, 1000, 0, 100)];
    const own = [...one(1, "One"), count(12, 1100, 0, 150)];
    const fork = await read([...copied, ...own], { forked_from_id: idAt(-50, "else") });
    assert.deepEqual(fork.state.facts.usage, {
      inputTokens: 100,
      cachedTokens: 0,
      outputTokens: 50,
      usd: null,
    });
    assert.equal(
      fork.entries[0]?.body.text,
      "Before",
      "a fork of a person's has the rows it was forked from",
    );
  });

  it("show plans, patches, searches and commands as what they are", async () => {
    const plan = { explanation: "First", plan: [{ step: "Look", status: "in_progress" }] };
    const { entries } = await read([
      call(1, "p", "update_plan", plan),
      item(2, "custom_tool_call", { call_id: "a", name: "apply_patch", input: "*** Begin Patch" }),
      event(2, "patch_apply_end", { call_id: "a", success: false }),
      item(3, "custom_tool_call_output", { call_id: "a", output: "no such file" }),
      item(4, "web_search_call", { id: "w", action: { type: "search", query: "kinfold" } }),
      item(5, "local_shell_call", {
        call_id: "l",
        action: { type: "exec", command: ["bash", "-lc", "pwd"] },
      }),
      output(6, "l", "Exit code: 3\nWall time: 1 seconds\nOutput:\n/w/app"),
      output(7, "unknown", { content: [{ type: "input_image" }] }),
    ]);
    const bodies = entries.map(({ kind, body }) => [
      kind,
      body.tool ?? null,
      body.ok ?? null,
      body.exitCode ?? null,
    ]);
    assert.deepEqual(bodies, [
      ["plan", null, null, null],
      ["toolCall", "apply_patch", null, null],
      ["toolResult", "apply_patch", false, null],
      ["toolCall", "web_search", null, null],
      ["toolCall", "local_shell", null, null],
      ["toolResult", "local_shell", false, 3],
      ["toolResult", null, true, null],
    ]);
    assert.deepEqual(entries[0]?.body.steps, [{ title: "Look", status: "in_progress" }]);
    assert.equal(entries[4]?.body.command, "pwd");
  });

  it("with an output too large to keep say how much is missing", async () => {
    const { entries } = await read([
      call(1, "c", "shell", { command: "x" }),
      output(2, "c", "y".repeat(400_000)),
    ]);
    const text = entries[1]?.body.text ?? "";
    assert.ok(text.length < 263_000);
    assert.match(text, /more characters are in the agent's own file\]$/u);
  });
});
