import assert from "node:assert/strict";
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type TestContext, test } from "node:test";
import type { FakePoint } from "../../drivers/fake/driver.ts";
import type { SessionRecord } from "../../store/port/store.ts";
import { startFake, withHandles } from "../testing/fake-daemon.ts";

const ID = "7e6d095d-e8a9-427a-ab54-60ecdbb00356";

test("a turn is stopped when its agent's own file says that nothing of its budget is left", async (t) => {
  const { client, quiet, store, call, prompted } = await startGemini(t);
  const { session } = await client.create({ prompt: "sim> say one\nsim> hang", limits: { tokens: 1_200 } });
  await prompted();
  call(400);
  call(400);
  call(410);
  const ended = await quiet(session.id);
  assert.deepEqual(
    [ended.outcome, ended.outcomeReason],
    ["failed", "it reached its limit of 1.2k tokens (used 1.2k)"],
  );
  assert.equal(tokens(ended), 1_210);
  const triggers = await store.read.triggers.ofSession(session.id);
  assert.deepEqual(
    triggers.map((each) => [each.type, each.payload["kind"]]),
    [["session_error", "budget"]],
  );
});

test("a later turn is metered without what the turns before it used, and waits when nothing is left", async (t) => {
  const { client, quiet, store, when, call, prompted } = await startGemini(t);
  const limits = { tokens: 1_000 };
  const { session } = await client.create({ prompt: "sim> say one\nsim> hang", limits });
  await prompted();
  call(600);
  await client.cancel({ id: session.id, turnOnly: true });
  assert.equal(tokens(await quiet(session.id)), 600);
  await client.prompt({ id: session.id, prompt: "sim> say two\nsim> hang" });
  await prompted();
  call(410);
  const ended = await quiet(session.id);
  assert.equal(ended.outcomeReason, "it reached its limit of 1k tokens (used 1k)");
  assert.equal(tokens(ended), 1_010);
  await client.prompt({ id: session.id, prompt: "sim> say three" });
  await when(async () => (await store.read.sessions.byId(session.id))?.parked?.on === "budget");
});

function tokens({ usage }: SessionRecord): number {
  return usage.inputTokens + usage.outputTokens;
}

/** Starts an agent that reports no usage but writes it where Gemini CLI does. */
async function startGemini(t: TestContext) {
  const home = mkdtempSync(path.join(tmpdir(), "kinfold-usage-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const chats = path.join(home, ".gemini", "tmp", "work", "chats");
  mkdirSync(chats, { recursive: true });
  const file = path.join(chats, "session-2026-11-16T14-42-7e6d095d.jsonl");
  const at = new Date().toISOString();
  writeFileSync(
    file,
    line({ sessionId: ID, projectHash: "0", startTime: at, lastUpdated: at, kind: "main" }),
  );
  let count = 0;
  const call = (input: number): void => {
    count += 1;
    const used = { input, output: 0, cached: 0, thoughts: 0, tool: 0, total: input };
    const row = { id: `${count}`, timestamp: at, type: "gemini", content: "x", thoughts: [], tokens: used };
    appendFileSync(file, line(row));
  };
  const place = { home, env: {} };
  const wrap = withHandles((handle) => ({
    agentSessionId: ID,
    prompt: async (text: string) => ({ ...(await handle.prompt(text)), usage: null }),
  }));
  let begun = Promise.withResolvers<void>();
  const gate = ({ at: point }: FakePoint): void => {
    if (point === "begin") begun.resolve();
  };
  /** Resolves when the agent has received its next prompt. */
  const prompted = async (): Promise<void> => {
    await begun.promise;
    begun = Promise.withResolvers<void>();
  };
  return { call, prompted, ...(await startFake(t, { name: "gemini", place, wrap, gate })) };
}

function line(row: Record<string, unknown>): string {
  return `${JSON.stringify(row)}\n`;
}
