import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { PromptEnd } from "../../drivers/port.ts";
import type { Parked } from "../../store/port/store.ts";
import { startFake, withHandles } from "../testing/fake-daemon.ts";

const OVERLOADED = "Internal error: API Error: Repeated 529 Overloaded errors.";

test("overload is retried with a growing pause, seen in the status, and the turn is repeated where it had not begun", async (t) => {
  const { client, store, quiet, prompts, pausedFor } = await startTroubled(t, [OVERLOADED, OVERLOADED]);
  const { session } = await client.create({ prompt: "count the files" });
  const pauses = [await pausedFor(session.id, 1), await pausedFor(session.id, 2)];
  const [first = 0, second = 0] = pauses.map(({ since, until }) => (until ?? 0) - since);
  assert.ok(first >= 20 && second >= 40 && second > first);
  assert.match(
    pauses[1]!.reason,
    /^its provider is overloaded: "API Error: Repeated 529 Overloaded errors\."; retry 2 of 3 in /,
  );
  assert.equal((await quiet(session.id)).outcome, "completed");
  assert.equal(prompts.length, 3);
  for (const prompt of prompts.slice(1))
    assert.match(prompt, /^\[Kinfold\] Your model's provider was in trouble before you could begin\./);
  for (const prompt of prompts) assert.equal(prompt.split("count the files").length, 2, prompt);
  assert.deepEqual(await store.read.triggers.ofSession(session.id), []);
});

test("a turn whose agent had called tools is continued, not repeated", async (t) => {
  const { client, quiet, prompts } = await startTroubled(t, [OVERLOADED], { afterWork: true });
  const { session } = await client.create({ prompt: "sim> write a.txt x\nsim> say written" });
  assert.equal((await quiet(session.id)).outcome, "completed");
  assert.match(
    prompts[1]!,
    /^\[Kinfold\] Your model's provider was in trouble, and your turn was cut\. Continue/,
  );
  assert.doesNotMatch(prompts[1]!, /sim>/);
});

test("when no retry is left the child fails, and its callback says how often it was tried and what to do", async (t) => {
  const { client, quiet, prompts, when, store } = await startTroubled(t, Array(9).fill(OVERLOADED));
  const { session: root } = await client.create({ agent: "sim", prompt: "sim> say root" });
  await quiet(root.id);
  const { session } = await client.spawn({ id: root.id, agent: "fake", prompt: "count the files" });
  const ended = await quiet(session.id);
  assert.equal(
    ended.outcomeReason,
    'its provider is overloaded: "API Error: Repeated 529 Overloaded errors." (tried 4 times)',
  );
  assert.equal(prompts.length, 4);
  const callback = await when(async () => {
    const entries = await store.read.entries.page(root.id, { limit: 100 });
    return entries.find((entry) => entry.kind === "callback");
  });
  assert.match(callback.body.text, /FAILED after .*: its provider is overloaded: .* \(tried 4 times\)\./);
  assert.match(callback.body.text, /Such errors are temporary: continue it later with tell_child/);
  const [error] = await store.read.triggers.ofSession(session.id);
  assert.equal(error?.payload["kind"], "provider");
});

for (const said of ["Authentication required", "Prompt is too long", "something else went wrong"]) {
  test(`"${said}" fails at once`, async (t) => {
    const { client, quiet, prompts } = await startTroubled(t, [said]);
    const { session } = await client.create({ prompt: "count the files" });
    const ended = await quiet(session.id);
    assert.equal(ended.outcome, "failed");
    assert.equal(prompts.length, 1);
    assert.ok(ended.outcomeReason?.includes(`"${said}"`), ended.outcomeReason ?? "");
  });
}

async function startTroubled(t: TestContext, errors: readonly string[], how: { afterWork?: true } = {}) {
  const prompts: string[] = [];
  const wrap = withHandles((handle) => ({
    async prompt(text: string): Promise<PromptEnd> {
      const error = errors[prompts.length] ?? null;
      prompts.push(text);
      const ended = error === null || how.afterWork ? await handle.prompt(text) : null;
      if (ended !== null && error === null) return ended;
      return { stopReason: "error", isAnswered: true, error, exit: null, usage: null };
    },
  }));
  const started = await startFake(t, { wrap, config: { retriesMax: 3, retryMs: 20 } });
  const { store, when } = started;
  /** Waits until the session is parked before this retry, and returns the parked state. */
  const pausedFor = (id: string, retry: number): Promise<Parked> =>
    when(async () => {
      const parked = (await store.read.sessions.byId(id))?.parked ?? null;
      return parked?.retry === retry && parked;
    });
  return { ...started, prompts, pausedFor };
}
