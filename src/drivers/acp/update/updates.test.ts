import type { SessionUpdate } from "@agentclientprotocol/sdk/unstable";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AgentUpdate } from "../../port.ts";
import { Updates } from "./updates.ts";

function translate(list: readonly object[]): {
  passed: AgentUpdate[];
  end: ReturnType<Updates["endPrompt"]>;
} {
  const passed: AgentUpdate[] = [];
  const updates = new Updates((update) => passed.push(update));
  updates.startPrompt();
  for (const update of list) updates.take(update as SessionUpdate);
  return { end: updates.endPrompt(), passed: passed.filter((update) => update.kind !== "fragment") };
}

const text = (words: string) => ({ type: "text", text: words });
const says = (words: string, messageId?: string) => ({
  sessionUpdate: "agent_message_chunk",
  content: text(words),
  messageId,
});
const started = (fields: object) => ({ sessionUpdate: "tool_call", toolCallId: "c", ...fields });
const updated = (fields: object) => ({ sessionUpdate: "tool_call_update", toolCallId: "c", ...fields });

describe("a message", () => {
  it("is completed by the next message, by another update, or by the prompt's end", () => {
    const { passed } = translate([
      says("One ", "a"),
      says("two", "a"),
      says("three", "b"),
      { sessionUpdate: "usage_update", used: 1, size: 2 },
      says(" four", "b"),
      { sessionUpdate: "plan", entries: [{ content: "x", priority: "low", status: "pending" }] },
      says("five"),
    ]);
    assert.deepEqual(
      passed.map((update) => (update.kind === "text" ? update.text : update.kind)),
      ["One two", "modelCall", "three four", "plan", "five"],
    );
  });

  it("outside a prompt ends when the agent is quiet", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const passed: AgentUpdate[] = [];
    const updates = new Updates((update) => passed.push(update));
    updates.take(says("by myself") as SessionUpdate);
    assert.deepEqual(
      passed.map((update) => update.kind),
      ["fragment"],
    );
    t.mock.timers.tick(1_000);
    assert.deepEqual(passed.at(-1), { kind: "text", text: "by myself" });
  });
});

describe("a tool call", () => {
  it("is announced at once if many calls are open, not only at the prompt's end", () => {
    const passed: AgentUpdate[] = [];
    const updates = new Updates((update) => passed.push(update));
    updates.startPrompt();
    for (let at = 0; at < 1_000; at += 1) {
      const call = { toolCallId: `c${at}`, title: "dig", status: "in_progress" };
      updates.take({ sessionUpdate: "tool_call", ...call } as SessionUpdate);
    }
    assert.equal(passed.length, 936);
    updates.endPrompt();
    assert.equal(new Set(passed.map((update) => update.kind === "toolCall" && update.callId)).size, 1_000);
  });

  it("of Claude Code is announced once, when its input is known", () => {
    const { passed } = translate([
      started({ name: "Bash", title: "Terminal", kind: "execute", status: "pending", rawInput: {} }),
      updated({ rawInput: { command: "cat x" }, title: "cat x" }),
      updated({ rawInput: { command: "cat x", description: "read" } }),
      updated({
        status: "completed",
        rawOutput: "hello",
        content: [{ type: "content", content: text("hello") }],
      }),
    ]);
    const [call, result] = passed;
    assert.deepEqual(
      passed.map((update) => update.kind),
      ["toolCall", "toolResult"],
    );
    assert.deepEqual(call?.kind === "toolCall" && [call.tool, call.command], ["Bash", "cat x"]);
    assert.deepEqual(
      result?.kind === "toolResult" && [result.text, result.ok, result.exitCode, result.ours],
      ["hello", true, null, false],
    );
  });

  it("of Codex has its output and exit code from the terminal fields", () => {
    const { passed } = translate([
      started({
        kind: "execute",
        title: "make",
        status: "in_progress",
        content: [{ type: "terminal", terminalId: "c" }],
        rawInput: { command: "make", cwd: "/w" },
      }),
      updated({
        name: "exec_command",
        status: "failed",
        _meta: {
          terminal_output_delta: { data: "no rule\n" },
          terminal_exit: { exit_code: 2, signal: null },
        },
      }),
    ]);
    const result = passed[1];
    assert.deepEqual(
      result?.kind === "toolResult" && [result.text, result.ok, result.command, result.exitCode],
      ["no rule\n", false, "make", 2],
    );
  });

  it("of OpenCode has its exit code from its metadata", () => {
    const { passed } = translate([
      started({ title: "bash", kind: "execute", status: "pending", rawInput: { command: "true" } }),
      updated({ status: "completed", title: "true", rawOutput: { output: "", metadata: { exit: 0 } } }),
    ]);
    assert.equal(passed[1]?.kind === "toolResult" && passed[1].exitCode, 0);
  });

  it("that never ended is announced and gets no result", () => {
    const { passed } = translate([started({ title: "slow", status: "pending" })]);
    assert.deepEqual(
      passed.map((update) => update.kind),
      ["toolCall"],
    );
  });

  it("reports the files of its diffs, and none when it failed", () => {
    const diff = { type: "diff", path: "/w/a", oldText: "1\n2\n", newText: "1\n3\n4\n" };
    const done = translate([started({ kind: "edit", status: "completed", content: [diff] })]).passed[1];
    assert.deepEqual(done?.kind === "toolResult" && done.files, [
      { path: "/w/a", status: "changed", added: 2, removed: 1 },
    ]);
    const failed = translate([started({ kind: "edit", status: "failed", content: [diff] })]).passed[1];
    assert.equal(failed?.kind === "toolResult" && failed.files, undefined);
  });
});

describe("the end of a prompt", () => {
  it("is an error if Codex reported an error as a normal end", () => {
    const status = { codex: { threadStatus: { type: "systemError" } } };
    const { end } = translate([
      says("stream disconnected"),
      { sessionUpdate: "session_info_update", _meta: status },
    ]);
    assert.equal(end.systemError, "stream disconnected");
  });

  it("counts only its own share of a session's running cost", () => {
    const passed: AgentUpdate[] = [];
    const updates = new Updates((update) => passed.push(update));
    const costs = (amount: number) =>
      ({
        sessionUpdate: "usage_update",
        used: 1,
        size: 9,
        cost: { amount, currency: "USD" },
      }) as SessionUpdate;
    updates.startPrompt();
    updates.take(costs(0.5));
    assert.equal(updates.endPrompt().usd, 0.5);
    updates.startPrompt();
    updates.take(costs(0.75));
    assert.equal(updates.endPrompt().usd, 0.25);
  });
});

describe("a replay", () => {
  it("keeps our tools' results, the number of calls after each prompt, and the last text after the last prompt", () => {
    const updates = new Updates(() => assert.fail("a replay is not news"));
    updates.startReplay();
    const user = (words: string, messageId: string) =>
      ({ sessionUpdate: "user_message_chunk", content: text(words), messageId }) as SessionUpdate;
    const tool = (id: string, name: string) =>
      ({
        sessionUpdate: "tool_call",
        toolCallId: id,
        title: name,
        name,
        status: "completed",
        rawOutput: `from ${name}`,
      }) as SessionUpdate;
    for (const update of [
      user("first, ", "u1"),
      user("in two parts", "u1"),
      says("answer") as SessionUpdate,
      tool("t1", "mcp__kinfold__wait_session"),
      tool("t2", "Bash"),
      user("second", "u2"),
      user("third", "u3"),
    ]) {
      updates.take(update);
    }
    assert.deepEqual(updates.endReplay(), {
      userTexts: ["first, in two parts", "second", "third"],
      toolResults: ["from mcp__kinfold__wait_session"],
      toolCalls: [2, 0, 0],
      lastText: null,
    });
  });
});

describe("what an agent reports about its vendor's limits", () => {
  it("is remembered until the next report", () => {
    const updates = new Updates(() => undefined);
    const told = (meta: object): void =>
      updates.take({ sessionUpdate: "usage_update", used: 1, size: 2, _meta: meta } as SessionUpdate);
    told({ "_claude/rateLimit": { status: "rejected", resetsAt: 1_794_780_000 } });
    told({ usage: { inputTokens: 1 } });
    assert.deepEqual(updates.limit, { isReached: true, resetsAt: 1_794_780_000_000 });
    told({ "_claude/rateLimit": { status: "allowed" } });
    assert.deepEqual(updates.limit, { isReached: false, resetsAt: null });
  });
});

describe("the tools that a prompt called", () => {
  it("are counted for each prompt, because the model is called again after each tool", () => {
    const call = started({ title: "ls", kind: "execute", rawInput: { command: "ls" } });
    assert.equal(translate([call, updated({ status: "completed" }), says("done")]).end.toolCalls, 1);
    assert.equal(translate([says("done")]).end.toolCalls, 0);
  });
});
