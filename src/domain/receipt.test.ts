import assert from "node:assert/strict";
import { test } from "node:test";
import type { Receipt } from "../contract/index.ts";
import type { AgentUpdate } from "../drivers/port.ts";
import {
  addUsage,
  deniedLine,
  emptySeen,
  mergeReceipts,
  observe,
  receiptLine,
  receiptOf,
  toolCallCount,
} from "./receipt.ts";
import type { AgentUpdateLike, Seen } from "./receipt.ts";

test("a turn's receipt holds its calls by name and success, its commands and its files", () => {
  const seen = watch([
    call("1", "bash", { command: "npm test" }),
    result("1", "bash", { ok: false, exitCode: 1 }),
    call("2", "edit", {}),
    result("2", "edit", { files: [{ path: "a.ts", status: "added", added: 3, removed: 0 }] }),
    call("3", "edit", {}),
    result("3", "edit", { files: [{ path: "a.ts", status: "changed", added: 1, removed: 1 }] }),
  ]);
  assert.deepEqual(receiptOf(seen, more), {
    toolCalls: [
      { name: "bash", ok: false, count: 1 },
      { name: "edit", ok: true, count: 2 },
    ],
    commands: [{ command: "npm test", exitCode: 1 }],
    filesChanged: [{ path: "a.ts", status: "added", added: 4, removed: 1 }],
    denied: [],
    ...more,
  });
});

test("a driver's updates can be folded as they are", () => {
  const updates: AgentUpdate[] = [
    { kind: "fragment", what: "text", text: "a" },
    { kind: "text", text: "a" },
    { kind: "plan", steps: [] },
    { kind: "toolCall", callId: "1", tool: "read", title: "read a.ts", input: {}, paths: ["a.ts"] },
    { kind: "toolResult", callId: "1", tool: "read", text: "…", ok: true, ours: false },
  ];
  const seen = updates.reduce<Seen>(observe, emptySeen());
  assert.deepEqual(seen.toolCalls, [{ name: "read", ok: true }]);
});

test("a call that is announced twice counts once, and its command may come late", () => {
  const seen = watch([
    call("1", "bash", {}),
    call("1", "bash", { command: "ls" }),
    result("1", "bash", { command: "ls -l", exitCode: 0 }),
    result("1", "bash", { exitCode: 0 }),
  ]);
  assert.deepEqual(seen.toolCalls, [{ name: "bash", ok: true }]);
  assert.deepEqual(seen.commands, [{ command: "ls -l", exitCode: 0 }]);
});

test("a result that was never announced counts as a call", () => {
  assert.deepEqual(watch([result("1", "bash", { command: "ls" })]).toolCalls, [{ name: "bash", ok: true }]);
});

test("a call without a result is not ok, and is known to be the last", () => {
  const cut = watch([
    call("1", "read", {}),
    call("2", "edit", { title: "write db/0042.sql" }),
    result("1", "read", {}),
  ]);
  assert.deepEqual([cut.lastTool, cut.lastToolHasResult], ["write db/0042.sql", false]);
  assert.deepEqual(cut.toolCalls[1], { name: "edit", ok: false });
  observe(cut, result("2", "edit", {}));
  assert.equal(cut.lastToolHasResult, true);
  assert.equal(watch([call("1", "read", { title: " " })]).lastTool, "read");
});

test("a file that came and went is no change, one that was removed and written again is", () => {
  const change = (path: string, status: "added" | "changed" | "removed") =>
    result(path + status, "edit", { files: [{ path, status, added: null, removed: null }] });
  const seen = watch([
    change("tmp", "added"),
    change("tmp", "removed"),
    change("b", "removed"),
    change("b", "added"),
    change("c", "changed"),
    change("c", "removed"),
  ]);
  assert.deepEqual(
    seen.files.map((file) => [file.path, file.status]),
    [
      ["b", "changed"],
      ["c", "removed"],
    ],
  );
});

test("names and commands are kept in one line, without terminal sequences, within bounds", () => {
  const seen = watch([call("1", "ba\nsh", { command: `cat <<E\n\u001b[31m${"x".repeat(5_000_000)}` })]);
  assert.equal(seen.toolCalls[0]?.name, "ba sh");
  assert.match(seen.commands[0]?.command ?? "", /^cat <<E x{290}x*…$/);
  const flood = Array.from({ length: 3000 }, (_, i) => call(String(i), "bash", { command: `c${i}` }));
  const receipt = receiptOf(watch(flood), more);
  assert.equal(receipt.commands.length, 1000);
  assert.equal(receipt.commands.at(-1)?.command, "c2999");
  assert.deepEqual(receipt.toolCalls, [{ name: "bash", ok: false, count: 3000 }]);
});

test("what an agent calls its calls does not matter", () => {
  assert.equal(watch([call("__proto__", "constructor", {}), call("", "", {})]).toolCalls.length, 2);
});

test("the receipt of a round is the sum of its turns", () => {
  const first = receiptOf(
    watch([call("1", "bash", { command: "ls" }), result("1", "bash", { exitCode: 0 })]),
    more,
  );
  const denied = watch([call("1", "bash", { command: "git push" }), result("1", "bash", { ok: false })]);
  denied.denied.push("git push", "git push");
  const second = receiptOf(denied, { ...more, stopReason: "refusal" });
  assert.deepEqual(mergeReceipts([first, second]), {
    turns: 2,
    toolCalls: [
      { name: "bash", ok: true, count: 1 },
      { name: "bash", ok: false, count: 1 },
    ],
    commands: [
      { command: "ls", exitCode: 0 },
      { command: "git push", exitCode: null },
    ],
    filesChanged: [],
    denied: [{ tool: "git push", count: 2 }],
    durationMs: 2000,
    usage: { inputTokens: 80, cachedTokens: 20, outputTokens: 4, usd: null },
    stopReason: "refusal",
  });
  assert.deepEqual(first.toolCalls, [{ name: "bash", ok: true, count: 1 }]);
});

test("a cost that is known once is known", () => {
  const usage = (usd: number | null) => ({ inputTokens: 1, cachedTokens: 0, outputTokens: 1, usd });
  assert.equal(addUsage(usage(null), usage(0.5)).usd, 0.5);
  assert.equal(addUsage(usage(0.5), usage(null)).usd, 0.5);
  assert.equal(addUsage(usage(0.5), usage(0.25)).usd, 0.75);
  assert.equal(addUsage(usage(null), usage(null)).usd, null);
});

test("a receipt reads as one line", () => {
  assert.equal(receiptLine(mergeReceipts([])), "no tool call");
  const one = receiptOf(watch([call("1", "bash", { command: "cat @x `y`" })]), more);
  assert.equal(receiptLine(one), String.raw`1 tool call, 1 command (last: cat \@x 'y'), 42 tokens`);
});

test("denied requests are counted, and the first few named", () => {
  const denied = (n: number): Receipt => ({
    ...mergeReceipts([]),
    denied: Array.from({ length: n }, (_, i) => ({ tool: `t${i}`, count: 2 })),
  });
  assert.equal(deniedLine(denied(0)), null);
  assert.equal(deniedLine(denied(1)), "Denied: 2 requests (t0).");
  assert.equal(deniedLine(denied(6)), "Denied: 12 requests (t0, t1, t2, t3, t4, …).");
});

const more = {
  turns: 1,
  durationMs: 1000,
  usage: { inputTokens: 40, cachedTokens: 10, outputTokens: 2, usd: null },
  stopReason: "end_turn",
};

function watch(updates: readonly AgentUpdateLike[]): Seen {
  return updates.reduce(observe, emptySeen());
}

function call(callId: string, tool: string, rest: { title?: string; command?: string }): AgentUpdateLike {
  return { kind: "toolCall", callId, tool, title: tool, ...rest };
}

function result(
  callId: string,
  tool: string,
  rest: Partial<Extract<AgentUpdateLike, { kind: "toolResult" }>>,
): AgentUpdateLike {
  return { kind: "toolResult", callId, tool, ok: true, ...rest };
}

test("a receipt names at most 200 kinds of calls, counts the others together and loses none", () => {
  const seen = emptySeen();
  for (let i = 0; i < 5_000; i++) {
    observe(seen, { kind: "toolCall", callId: `c${i}`, tool: `dig ${i}`, title: "dig" });
  }
  const usage = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd: null };
  const receipt = receiptOf(seen, { turns: 1, durationMs: 1, usage, stopReason: null });
  assert.equal(receipt.toolCalls.length, 201);
  assert.deepEqual(receipt.toolCalls.at(-1), { name: "other tools", ok: false, count: 4_800 });
  assert.equal(toolCallCount(mergeReceipts([receipt, receipt])), 10_000);
});
