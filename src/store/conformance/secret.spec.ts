import assert from "node:assert/strict";
import { it } from "node:test";
import type { EntryBody } from "../../contract/index.ts";
import { sampleSecrets } from "../../secrets/testing/sample-secret.ts";
import type { MessageRecord, Store, Tx } from "../port/store.ts";
import { aChild, aLease, aMessage, anEvent, aSession, aTrigger, aTurn } from "../testing/sample.ts";

const { secret, text } = sampleSecrets(21).find((each) => each.kind === "github classic token")!;
const MARK = "[redacted: github token]";
const shown = text.replace(secret, MARK);

/** The store redacts user and agent text, except text that an agent has yet to receive. */
export function secretRules(fresh: () => Promise<Store>): void {
  heldRules(fresh);
  longRules(fresh);

  it("no record keeps a secret, whichever of its texts contains it", async () => {
    const store = await fresh();
    const root = aSession({
      name: secret,
      title: text,
      outcomeReason: text,
      endBy: text,
      endNote: text,
      spawnConfig: { prompt: text, deep: [{ instructions: text }] },
      evidence: { state: "working", reason: text, confidence: "certain", at: 1 },
      parked: { on: "limit", since: 1, until: 2, reason: text },
    });
    const turn = aTurn(root.id, {
      description: text,
      error: text,
      stopReason: text,
      lastAssistantMessage: text,
      stopBy: text,
      stopNote: text,
    });
    const trigger = aTrigger(root.id, { payload: { question: text }, default: text, context: text });
    const body: EntryBody = { text, tool: "shell", input: { env: { TOKEN: secret } }, command: text };
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      await tx.sessions.patch(root.id, { title: text, spawnConfig: { prompt: text } });
      await tx.turns.add(turn);
      const receipt = { ...NOTHING_DONE, commands: [{ command: text, exitCode: 0 }] };
      await tx.turns.patchRunning(turn.id, turn.fence, { error: text, receipt });
      await tx.triggers.add(trigger);
      await tx.triggers.patch(trigger.id, { context: text });
      await tx.leases.put(
        aLease(root.id, { descendants: [{ pid: 1, startTime: null, command: `x --token ${secret}` }] }),
      );
      const entry = { turnId: turn.id, author: "agent", kind: "text", isSubagent: false, at: 1 } as const;
      const [kept] = await tx.entries.append(root.id, [{ ...entry, body }]);
      assert.ok(!JSON.stringify(kept).includes(secret), "what is answered is what is kept");
      tx.append(anEvent(root.id, { text, data: { asked: text, token: secret } }));
    });
    const { read } = store;
    const kept = [
      await read.sessions.byId(root.id),
      await read.turns.byId(turn.id),
      await read.triggers.byId(trigger.id),
      await read.leases.bySession(root.id),
      await read.entries.page(root.id, { limit: 10 }),
      await store.feed.ofTree(root.id, 0, 10),
    ];
    for (const each of kept) {
      assert.ok(!JSON.stringify(each).includes(secret), JSON.stringify(each));
      assert.ok(JSON.stringify(each).includes("[redacted: "), JSON.stringify(each));
    }
    const named = await read.sessions.byRef(secret, "all");
    assert.deepEqual(
      named.map(({ id }) => id),
      [root.id],
      "who knows its name finds it by that",
    );
  });
}

/** Returns a text that is too long to be redacted in one go; each `n` gives a different one. */
function longText(n: number): string {
  return `${n} ${"a line of a log\n".repeat(2_000)}${text}`;
}

function longRules(fresh: () => Promise<Store>): void {
  it("a write with long texts is committed once, without their secrets, and others have turns meanwhile", async () => {
    const store = await fresh();
    const root = aSession({ title: longText(0), spawnConfig: { instructions: longText(1) } });
    const message = aMessage(root.id, { body: longText(2), data: { result: longText(3) } });
    const entry = { turnId: null, author: "person", kind: "text", isSubagent: false, at: 1 } as const;
    let turns = 0;
    const counting = setInterval(() => (turns += 1), 0);
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      await tx.messages.add(message);
      await tx.entries.append(root.id, [{ ...entry, body: { text: longText(4) } }]);
      await tx.messages.move(message.id, ["queued"], { status: "landed" });
      tx.append(anEvent(root.id, { text: longText(5) }));
    });
    clearInterval(counting);
    const kept = [
      await store.read.sessions.byId(root.id),
      await store.read.messages.byId(message.id),
      await store.read.entries.page(root.id, { limit: 10 }),
      await store.feed.ofTree(root.id, 0, 10),
    ].map((each) => JSON.stringify(each));
    for (const [i, count] of [2, 2, 1, 1].entries()) {
      assert.ok(!kept[i]?.includes(secret));
      assert.equal(kept[i]?.split(MARK).length, count + 1);
    }
    assert.ok(turns > 0);
  });

  it("a write whose long text is another each time it is tried is committed too", async () => {
    const store = await fresh();
    const root = aSession();
    let tries = 0;
    await store.write(root.id, (tx) => {
      tries += 1;
      return tx.sessions.add({ ...root, title: longText(tries) });
    });
    const { title } = (await store.read.sessions.byId(root.id))!;
    assert.equal(title, longText(tries).replace(secret, MARK));
  });

  it("a write that fails after a long text leaves nothing and rejects with its error", async () => {
    const store = await fresh();
    const root = aSession({ title: longText(0) });
    const failing = store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      throw new Error("no");
    });
    await assert.rejects(failing, /^Error: no$/);
    assert.equal(await store.read.sessions.byId(root.id), null);
  });
}

function heldRules(fresh: () => Promise<Store>): void {
  for (const end of ["landed", "void"] as const) {
    it(`a message is kept as it was sent until it is ${end}, and loses its secrets with that write`, async () => {
      const store = await fresh();
      const root = aSession();
      const sent = { body: text, data: { result: text }, metadata: { note: text } };
      const message = aMessage(root.id, sent);
      await store.write(root.id, async (tx) => {
        await tx.sessions.add(root);
        await tx.messages.add(message);
        await tx.messages.move(message.id, ["queued"], { status: "taken", carrier: "prompt" });
        await tx.messages.move(message.id, ["taken"], { status: "queued", carrier: null });
        await tx.messages.move(message.id, ["queued"], { status: "taken", carrier: "prompt" });
      });
      assert.deepEqual(sentOf(await store.read.messages.byId(message.id)), sent);
      const isMoved = await store.write(root.id, (tx) =>
        tx.messages.move(message.id, ["taken"], {
          status: end,
          ...(end === "void" ? { voidReason: text } : {}),
        }),
      );
      assert.ok(isMoved);
      const over = await store.read.messages.byId(message.id);
      assert.deepEqual(sentOf(over), { body: shown, data: { result: shown }, metadata: { note: shown } });
      assert.equal(over?.voidReason, end === "void" ? shown : null);
      await store.write(root.id, async (tx) => {
        const late = { metadata: { note: text, delivered: "injected" } };
        assert.ok(await tx.messages.move(message.id, ["queued", "taken", "landed", "void"], late));
      });
      const after = await store.read.messages.byId(message.id);
      assert.deepEqual(after?.metadata, { note: shown, delivered: "injected" });
    });
  }

  it("a message that is void from the first is never kept as it was written", async () => {
    const store = await fresh();
    const root = aSession();
    const message = aMessage(root.id, { status: "void", body: text, data: { result: text } });
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      await tx.messages.add(message);
    });
    assert.equal((await store.read.messages.byId(message.id))?.body, shown);
  });

  it("the answer to a vendor's own request is held for its process until it was heard, or cannot be", async () => {
    const store = await fresh();
    const root = aSession();
    const [own, heard, unheard] = [
      aTrigger(root.id),
      aTrigger(root.id, { fence: 3 }),
      aTrigger(root.id, { fence: 3 }),
    ] as const;
    const answer = { by: "the user", callerId: null, action: null, response: text, answers: null, at: 1 };
    const responses = async (): Promise<(string | null | undefined)[]> => {
      const rows = await Promise.all([own, heard, unheard].map(({ id }) => store.read.triggers.byId(id)));
      return rows.map((row) => row?.answer?.response);
    };
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      for (const each of [own, heard, unheard]) {
        await tx.triggers.add(each);
        await tx.triggers.close(each.id, { status: "answered", answer, closedAt: 1 });
      }
    });
    assert.deepEqual(await responses(), [shown, text, text]);
    await store.write(root.id, (tx) => tx.triggers.seen(heard.id, 2));
    assert.deepEqual(await responses(), [shown, shown, text]);
    await store.write(root.id, (tx) => tx.triggers.unheard(root.id, 2));
    assert.deepEqual(await responses(), [shown, shown, text], "another process may still hear it");
    await store.write(root.id, (tx) => tx.triggers.unheard(root.id, 3));
    assert.deepEqual(await responses(), [shown, shown, shown]);
  });

  it("the steps of a chain are held until they begin, or the session has ended", async () => {
    const store = await fresh();
    const root = aSession();
    const child = aChild(root, { spawnConfig: { prompt: text, chain: [{ task: text }] } });
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      await tx.sessions.add(child);
    });
    const config = async (): Promise<unknown> => (await store.read.sessions.byId(child.id))?.spawnConfig;
    assert.deepEqual(await config(), { prompt: shown, chain: [{ task: text }] });
    await store.write(root.id, (tx: Tx) =>
      tx.sessions.patch(child.id, { endedAt: 5, endReason: "cancelled" }),
    );
    assert.deepEqual(await config(), { prompt: shown, chain: [{ task: shown }] });
  });
}

function sentOf(message: MessageRecord | null): Pick<MessageRecord, "body" | "data" | "metadata"> {
  const { body, data, metadata } = message!;
  return { body, data, metadata };
}

const NOTHING_DONE = {
  turns: 1,
  toolCalls: [],
  commands: [],
  filesChanged: [],
  denied: [],
  durationMs: 1,
  usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, usd: null },
  stopReason: null,
};
