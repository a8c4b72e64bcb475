import assert from "node:assert/strict";
import { test } from "node:test";
import { CallMeter } from "./call-meter.ts";
import type { AgentUpdate } from "../../port.ts";
import { claude } from "../../vendors/claude/claude.ts";
import { Updates } from "./updates.ts";

/**
 * A message as adapter 0.99.1 passes it on from Claude Code 2.1, which sends one message per block of an
 * answer.
 */
function answer(id: string, input: number, cached: number): unknown {
  const usage = {
    input_tokens: input,
    cache_creation_input_tokens: 5,
    cache_read_input_tokens: cached,
    output_tokens: 1,
  };
  return { sessionId: "s", message: { type: "assistant", message: { id, usage, content: [] } } };
}

test("the model calls of a Claude prompt are counted as they end, each once, and anew for the next prompt", () => {
  const seen: AgentUpdate[] = [];
  const updates = new Updates((update) => seen.push(update));
  const call = (id: string, input: number, cached: number): void =>
    updates.takeCall(claude.callUsage!("_claude/sdkMessage", answer(id, input, cached))!);
  const context = (used: number): void => updates.take({ sessionUpdate: "usage_update", used, size: 1_000 });
  const counted = (): unknown => seen.findLast((update) => update.kind === "usage")?.usage;
  updates.startPrompt();
  context(106);
  assert.equal(counted(), undefined, "the context alone says nothing of a call");
  call("a", 100, 0);
  call("a", 100, 0);
  context(125);
  assert.deepEqual(counted(), { inputTokens: 105, cachedTokens: 0, outputTokens: 20, usd: null });
  call("b", 10, 120);
  context(140);
  assert.deepEqual(counted(), { inputTokens: 120, cachedTokens: 120, outputTokens: 25, usd: null });
  updates.endPrompt();
  updates.startPrompt();
  call("c", 1, 0);
  assert.deepEqual(counted(), { inputTokens: 6, cachedTokens: 0, outputTokens: 1, usd: null });
});

test("other notifications of Claude are not model calls", () => {
  assert.equal(claude.callUsage!("session/update", {}), null);
  assert.equal(claude.callUsage!("_claude/sdkMessage", { message: { type: "user" } }), null);
  assert.equal(claude.callUsage!("_claude/sdkMessage", null), null);
});

test("a model call that is reported again counts once, with its largest numbers", () => {
  const meter = new CallMeter();
  meter.call({ id: "a", inputTokens: 10, cachedTokens: 5, outputTokens: 9 });
  meter.call({ id: "a", inputTokens: 10, cachedTokens: 5, outputTokens: 1 });
  meter.call({ id: "b", inputTokens: 1, cachedTokens: 0, outputTokens: 1 });
  assert.deepEqual(meter.total(), { inputTokens: 11, cachedTokens: 5, outputTokens: 10 });
});
