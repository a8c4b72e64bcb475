import assert from "node:assert/strict";
import { it } from "node:test";
import { uuidv7 } from "uuidv7";
import type { Receipt } from "../../contract/index.ts";
import type { NewEntry, SessionRecord, Store, Tx } from "../port/store.ts";
import { aChild, aLease, aMessage, aSession, aTrigger, aTurn } from "../testing/sample.ts";

type Fresh = () => Promise<Store>;

export function recordRules(fresh: Fresh): void {
  sessionRules(fresh);
  listRules(fresh);
  readyRules(fresh);
  messageRules(fresh);
  turnRules(fresh);
  entryRules(fresh);
  leaseRules(fresh);
  otherRules(fresh);
}

async function treeOf(store: Store, fields: Partial<SessionRecord> = {}): Promise<SessionRecord> {
  const root = aSession(fields);
  await store.write(root.id, (tx) => tx.sessions.add(root));
  return root;
}

const EVERYTHING: Partial<SessionRecord> = {
  name: "naïve 名前 👩‍👩‍👧 \u202e\"'`;--",
  title: "line\nbreak\ttab \\ ${x} {{y}}",
  spawnConfig: { nested: { list: [1, null, "two", { deep: true }] }, nul: "a\u0000b", lone: "\ud800" },
  detachedAt: 8_640_000_000_000_000,
  backgroundUntil: 0,
  parked: { on: "limit", since: 1, until: 2, reason: 'the agent reported: "later"' },
  pausedMs: 5,
  spawnTurnId: "t",
  spawnEntryIndex: 3,
  model: "",
  round: 4_294_967_296,
  roundOpen: false,
  seen: false,
  fence: Number.MAX_SAFE_INTEGER,
  held: "failed",
  outcome: "interrupted",
  usage: { inputTokens: 9_007_199_254_740_991, cachedTokens: 1, outputTokens: 2, usd: 0.1 + 0.2 },
};

function sessionRules(fresh: Fresh): void {
  it("a session comes back exactly as it was written", async () => {
    const store = await fresh();
    const root = await treeOf(store, EVERYTHING);
    assert.deepEqual(await store.read.sessions.byId(root.id), root);
  });

  it("a patch changes the fields it names and no other", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    await store.write(root.id, (tx) => tx.sessions.patch(root.id, EVERYTHING));
    assert.deepEqual(await store.read.sessions.byId(root.id), { ...root, ...EVERYTHING });
    await store.write(root.id, (tx) => tx.sessions.patch(root.id, { title: null, name: undefined }));
    assert.deepEqual(await store.read.sessions.byId(root.id), { ...root, ...EVERYTHING, title: null });
  });

  it("what the store counts and what never changes is not patched", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const stale = { ...root, id: uuidv7(), rootId: uuidv7(), createdAt: 5, entryCount: 7, positionCount: 8 };
    await store.write(root.id, async (tx) => {
      await tx.messages.add(aMessage(root.id));
      await tx.sessions.patch(root.id, { ...stale, turnCount: 9, messageCount: 1, title: "new" });
    });
    const after = await store.read.sessions.byId(root.id);
    assert.deepEqual(after, { ...root, positionCount: 1, messageCount: 1, title: "new" });
  });

  it("a session is found by id, short id, name and a prefix of eight characters, newest first", async () => {
    const store = await fresh();
    const older = await treeOf(store, { name: "twin", createdAt: 1 });
    const newer = await treeOf(store, { name: "twin", createdAt: 2 });
    const ids = async (ref: string) => (await store.read.sessions.byRef(ref, "all")).map((found) => found.id);
    assert.deepEqual(await ids(older.id), [older.id]);
    assert.deepEqual(await ids(older.id.toUpperCase()), [older.id]);
    assert.deepEqual(await ids(older.shortId), [older.id]);
    assert.deepEqual(await ids(newer.id.slice(0, -1)), [newer.id]);
    assert.deepEqual(await ids("twin"), [newer.id, older.id]);
    assert.deepEqual(await ids(older.id.slice(0, 7)), []);
    assert.deepEqual(await ids("%"), []);
    assert.deepEqual(await ids("' OR 1=1 --"), []);
  });

  it("open, awaited and named children are those the rules mean", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const off = { ...root.callback, enabled: false };
    const child = (name: string, fields: Partial<SessionRecord>) => aChild(root, { name, ...fields });
    const children = [
      child("open", { createdAt: 1 }),
      child("mute", { createdAt: 2, callback: off }),
      child("done", { createdAt: 3, roundOpen: false }),
      child("gone", { createdAt: 4, endedAt: 9 }),
      child("free", { createdAt: 5, detachedAt: 9 }),
      child("attached", { createdAt: 6, origin: "attached" }),
    ];
    await store.write(root.id, async (tx) => {
      for (const each of children) await tx.sessions.add(each);
    });
    const { sessions } = store.read;
    const names = (found: readonly { name: string | null }[]) => found.map((each) => each.name);
    assert.deepEqual(
      names(await sessions.children(root.id)),
      children.map((each) => each.name),
    );
    assert.deepEqual(names(await sessions.openChildren(root.id)), ["open", "mute"]);
    assert.deepEqual(names(await sessions.awaitedChildren(root.id)), ["open"]);
    assert.equal((await sessions.openByName(root.id, "open"))?.name, "open");
    assert.equal(await sessions.openByName(root.id, "done"), null);
    assert.equal(await sessions.openCount(root.id), 4);
    assert.equal(await sessions.spawnedSince(root.id, 4), 3);
    await store.write(root.id, (tx) => tx.sessions.patch(children[0]?.id ?? "", { callback: off }));
    assert.deepEqual(await sessions.awaitedChildren(root.id), []);
  });
}

function listRules(fresh: Fresh): void {
  it("a list is filtered, newest first, and paged without gap or repeat", async () => {
    const store = await fresh();
    const roots: SessionRecord[] = [];
    for (let i = 0; i < 12; i++) {
      roots.push(
        await treeOf(store, { createdAt: 100 + Math.floor(i / 3), agent: i % 2 ? "sim" : "claude" }),
      );
    }
    const newest = roots.toSorted((a, b) => b.createdAt - a.createdAt || (a.id < b.id ? 1 : -1));
    const paged: string[] = [];
    let before: { createdAt: number; id: string } | undefined;
    for (;;) {
      const page = await store.read.sessions.list({ visible: "all", limit: 5, before });
      paged.push(...page.map((session) => session.id));
      const last = page.at(-1);
      if (last === undefined) break;
      before = { createdAt: last.createdAt, id: last.id };
    }
    assert.deepEqual(
      paged,
      newest.map((session) => session.id),
    );
    const sims = await store.read.sessions.list({
      agent: "sim",
      ended: false,
      visible: ["default"],
      limit: 50,
    });
    assert.equal(sims.length, 6);
    assert.deepEqual(await store.read.sessions.list({ visible: "all", ended: true, limit: 50 }), []);
    assert.deepEqual(await store.read.sessions.list({ visible: "all", unseen: true, limit: 50 }), []);
  });

  it("a tree is listed by depth and then creation", async () => {
    const store = await fresh();
    const root = await treeOf(store, { createdAt: 50 });
    const child = aChild(root, { createdAt: 10 });
    const grandchild = aChild(child, { createdAt: 5 });
    const second = aChild(root, { createdAt: 20 });
    await store.write(root.id, async (tx) => {
      for (const each of [child, grandchild, second]) await tx.sessions.add(each);
    });
    const order = (await store.read.sessions.tree(root.id)).map((session) => session.id);
    const used = (await store.read.sessions.treeUsage(root.id)).map((session) => session.id);
    assert.deepEqual(used, order);
    assert.deepEqual(order, [root.id, child.id, second.id, grandchild.id]);
  });

  it("counts and usage say how much is going on", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const idle = aChild(root, { roundOpen: false, seen: false });
    const usage = { inputTokens: 100, cachedTokens: 0, outputTokens: 11, usd: 0.25 };
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(idle);
      await tx.sessions.add(aChild(root));
      await tx.turns.add(aTurn(root.id));
      await tx.turns.add(aTurn(idle.id, { status: "completed", settledAt: 500, usage }));
      await tx.turns.add(aTurn(idle.id, { status: "completed", settledAt: 400, usage }));
    });
    const counts = { running: 1, waiting: 1, open: 2, unseen: 1, sessions: 3, families: 1 };
    assert.deepEqual(await store.read.sessions.counts("all"), counts);
    assert.deepEqual(await store.read.sessions.counts(["default"]), counts);
    assert.equal((await store.read.sessions.counts(["other"])).sessions, 0);
    assert.deepEqual(await store.read.sessions.usageSince(500, ["default"]), { tokens: 111, usd: 0.25 });
    assert.deepEqual(await store.read.sessions.usageSince(501, "all"), { tokens: 0, usd: null });
  });
}

function readyRules(fresh: Fresh): void {
  it("ready are managed sessions of the node with a queued message and no turn, longest waiting first", async () => {
    const store = await fresh();
    const add = async (admittedAt: number, fields: Partial<SessionRecord> = {}) => {
      const root = await treeOf(store, fields);
      await store.write(root.id, (tx) => tx.messages.add(aMessage(root.id, { admittedAt })));
      return root;
    };
    const third = await add(30);
    const first = await add(10);
    const second = await add(20);
    await add(1, { held: "failed" });
    await add(1, { endedAt: 5 });
    await add(1, { node: "elsewhere" });
    await add(1, { origin: "attached" });
    await treeOf(store);
    const busy = await add(1);
    await store.write(busy.id, (tx) => tx.turns.add(aTurn(busy.id)));
    const ids = (await store.read.sessions.ready("local", 10)).map((session) => session.id);
    assert.deepEqual(ids, [first.id, second.id, third.id]);
    assert.equal((await store.read.sessions.ready("local", 2)).length, 2);
    assert.equal(await store.read.sessions.readyBefore("local", third.id), 2);
    assert.equal(await store.read.sessions.readyBefore("local", first.id), 0);
  });

  it("sessions of a node whose round is open are found after a restart", async () => {
    const store = await fresh();
    const open = await treeOf(store);
    await treeOf(store, { roundOpen: false });
    await treeOf(store, { node: "elsewhere" });
    await treeOf(store, { endedAt: 1 });
    const found = await store.read.sessions.withOpenRound("local");
    assert.deepEqual(
      found.map((session) => session.id),
      [open.id],
    );
  });

  it("a reply that was lost is found by its input for as long as asked", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const child = aChild(root, { keyHash: "h", replyLostAt: 100 });
    await store.write(root.id, (tx) => tx.sessions.add(child));
    assert.equal((await store.read.sessions.replyLost(root.id, "h", 100))?.id, child.id);
    assert.equal(await store.read.sessions.replyLost(root.id, "h", 101), null);
    assert.equal(await store.read.sessions.replyLost(root.id, "other", 0), null);
  });
}

function messageRules(fresh: Fresh): void {
  it("messages have positions in the order of admission, and answers are worked off first", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        store.write(root.id, (tx) =>
          tx.messages.add(aMessage(root.id, { body: String(i), kind: i === 20 ? "answer" : "prompt" })),
        ),
      ),
    );
    const queued = await store.read.messages.queued(root.id, 100);
    assert.equal(queued[0]?.kind, "answer");
    const rest = queued.slice(1).map((message) => message.position);
    assert.deepEqual(
      rest,
      Array.from({ length: 30 }, (_, i) => i).filter((i) => i !== queued[0]?.position),
    );
    assert.equal(await store.read.messages.queuedCount(root.id), 30);
  });

  it("a message moves only from a status it has", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const { id } = await store.write(root.id, (tx) => tx.messages.add(aMessage(root.id)));
    const take = () =>
      store.write(root.id, (tx) =>
        tx.messages.move(id, ["queued"], { status: "taken", turnId: "t", carrier: "prompt" }),
      );
    assert.deepEqual(await Promise.all([take(), take(), take()]), [true, false, false]);
    assert.equal((await store.read.messages.ofTurn("t"))[0]?.id, id);
    assert.equal(await store.read.messages.openCount(root.id), 1);
    const land = (tx: Tx) => tx.messages.move(id, ["taken", "queued"], { status: "landed", landedAt: 3 });
    assert.equal(await store.write(root.id, land), true);
    assert.deepEqual(await store.read.messages.ofSession(root.id, ["queued", "taken"]), []);
    assert.deepEqual(await store.read.messages.ofSession(root.id, []), []);
  });

  it("a prompt of 5 MB and every character survives", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const body = "äß漢字🙂 \u0001\r\n".repeat(450_000);
    const message = aMessage(root.id, {
      body,
      data: { body: body.slice(0, 1000) },
      metadata: { ключ: [1.5] },
    });
    const added = await store.write(root.id, (tx) => tx.messages.add(message));
    assert.ok(Buffer.byteLength(body) > 5_000_000);
    assert.deepEqual(await store.read.messages.byId(message.id), added);
    assert.deepEqual(await store.read.messages.byDeliveryId(root.id, message.deliveryId), added);
  });
}

const RECEIPT: Receipt = {
  turns: 1,
  toolCalls: [{ name: "Bash", ok: true, count: 2 }],
  commands: [{ command: "npm test", exitCode: 0 }],
  filesChanged: [],
  denied: [],
  durationMs: 5,
  usage: { inputTokens: 1, cachedTokens: 0, outputTokens: 1, usd: null },
  stopReason: "end_turn",
};

function turnRules(fresh: Fresh): void {
  it("a turn is settled once, by the writer with its fence", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const turn = await store.write(root.id, (tx) => tx.turns.add(aTurn(root.id, { fence: 2 })));
    assert.equal(turn.index, 0);
    const settle = (fence: number, error: string | null) =>
      store.write(root.id, (tx) =>
        tx.turns.patchRunning(turn.id, fence, { status: "completed", settledAt: 9, error, receipt: RECEIPT }),
      );
    assert.equal(await settle(1, "a late writer"), false);
    assert.equal(await settle(2, null), true);
    assert.equal(await settle(2, "twice"), false);
    const settled = { ...turn, status: "completed", settledAt: 9, receipt: RECEIPT };
    assert.deepEqual(await store.read.turns.byId(turn.id), settled);
    assert.equal(await store.read.turns.running(root.id), null);
  });

  it("a session has one running turn at most, and its turns are numbered in order", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    for (let i = 0; i < 3; i++) {
      await store.write(root.id, async (tx) => {
        const { id } = await tx.turns.add(aTurn(root.id, { round: i < 2 ? 1 : 2 }));
        if (i < 2) await tx.turns.patchRunning(id, 1, { status: "completed", settledAt: i });
      });
    }
    await assert.rejects(store.write(root.id, (tx) => tx.turns.add(aTurn(root.id))));
    const { turns } = store.read;
    const indexes = (found: { index: number }[]) => found.map((turn) => turn.index);
    assert.deepEqual(indexes(await turns.ofSession(root.id, { limit: 9 })), [2, 1, 0]);
    assert.deepEqual(indexes(await turns.ofSession(root.id, { beforeIndex: 2, limit: 1 })), [1]);
    assert.deepEqual(indexes(await turns.ofRound(root.id, 1)), [0, 1]);
    assert.equal((await turns.last(root.id))?.index, 2);
    assert.equal((await turns.running(root.id))?.index, 2);
    assert.equal(await turns.slotsHeld("local"), 1);
    const running = await turns.running(root.id);
    await store.write(root.id, (tx) => tx.turns.patchRunning(running?.id ?? "", 1, { blocked: 1 }));
    assert.equal(await turns.slotsHeld("local"), 0);
    assert.equal((await turns.runningOn("local")).length, 1);
  });
}

function entryRules(fresh: Fresh): void {
  it("a page of entries holds no more bytes than there is room for, and one entry at least", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const of = { turnId: null, author: "agent", kind: "text", isSubagent: false, at: 1 } as const;
    const sizes = [10, 500, 20, 30, 900];
    await store.write(root.id, (tx) =>
      tx.entries.append(
        root.id,
        sizes.map((size) => ({ ...of, body: { text: "x".repeat(size) } })),
      ),
    );
    const page = async (at: { before?: number; after?: number; limit?: number; bytesMax: number }) =>
      (await store.read.entries.page(root.id, { limit: 10, ...at })).map(({ index }) => index);
    assert.deepEqual(await page({ after: -1, bytesMax: 540 }), [0, 1]);
    assert.deepEqual(await page({ after: 0, bytesMax: 100 }), [1]);
    assert.deepEqual(await page({ after: 1, limit: 2, bytesMax: 9_000 }), [2, 3]);
    assert.deepEqual(await page({ bytesMax: 100 }), [4]);
    assert.deepEqual(await page({ before: 4, bytesMax: 150 }), [2, 3]);
    assert.deepEqual(await page({ bytesMax: 9_000 }), [0, 1, 2, 3, 4]);
  });

  const entry = (text: string): NewEntry => ({
    turnId: null,
    author: "agent",
    kind: "text",
    body: { text },
    isSubagent: false,
    at: 1,
  });

  it("entries of concurrent writers are numbered without a gap", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        store.write(root.id, (tx) =>
          tx.entries.append(
            root.id,
            Array.from({ length: i * 3 }, () => entry(`${i}`)),
          ),
        ),
      ),
    );
    const all = await store.read.entries.page(root.id, { limit: 1_000 });
    assert.deepEqual(
      all.map((each) => each.index),
      Array.from({ length: 570 }, (_, i) => i),
    );
    assert.equal((await store.read.sessions.byId(root.id))?.entryCount, 570);
  });

  it("a page of entries ascends: the tail, those before, those after", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const added = Array.from({ length: 10 }, (_, i) => entry(String(i)));
    await store.write(root.id, (tx) => tx.entries.append(root.id, added));
    const page = async (at: { before?: number; after?: number; limit: number }) =>
      (await store.read.entries.page(root.id, at)).map((each) => each.index);
    assert.deepEqual(await page({ limit: 3 }), [7, 8, 9]);
    assert.deepEqual(await page({ before: 7, limit: 3 }), [4, 5, 6]);
    assert.deepEqual(await page({ after: 2, limit: 3 }), [3, 4, 5]);
    assert.deepEqual(await page({ after: -1, limit: 2 }), [0, 1]);
    assert.deepEqual(await page({ after: 9, limit: 3 }), []);
  });
}

function leaseRules(fresh: Fresh): void {
  it("a lease is taken over by a higher fence, and the late holder can do nothing to it", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    await store.write(root.id, (tx) => tx.leases.put(aLease(root.id, { fence: 1 })));
    const taken = aLease(root.id, { fence: 2, boot: "later" });
    await store.write(root.id, (tx) => tx.leases.put(taken));
    const late = await store.write(root.id, async (tx) => [
      await tx.leases.patch(root.id, 1, { pid: 1 }),
      await tx.leases.remove(root.id, 1),
    ]);
    assert.deepEqual(late, [false, false]);
    await assert.rejects(store.write(root.id, (tx) => tx.leases.put(aLease(root.id, { fence: 1 }))));
    assert.deepEqual(await store.read.leases.bySession(root.id), { ...taken, rootId: root.id });
    const descendants = [{ pid: 7, startTime: 1_790_000_000_001, command: "sh" }];
    assert.equal(
      await store.write(root.id, (tx) => tx.leases.patch(root.id, 2, { pid: 5, descendants })),
      true,
    );
    assert.deepEqual((await store.read.leases.ofNode("local"))[0]?.descendants, descendants);
    assert.equal(await store.write(root.id, (tx) => tx.leases.remove(root.id, 2)), true);
    assert.equal(await store.read.leases.bySession(root.id), null);
  });
}

function otherRules(fresh: Fresh): void {
  it("a trigger is closed once; the second call returns false", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const trigger = aTrigger(root.id, { payload: { question: "?" } });
    await store.write(root.id, (tx) => tx.triggers.add(trigger));
    assert.equal(await store.read.triggers.openCount(root.id), 1);
    const close = (status: "answered" | "withdrawn") =>
      store.write(root.id, (tx) => tx.triggers.close(trigger.id, { status, closedAt: 2 }));
    assert.deepEqual(await Promise.all([close("answered"), close("withdrawn")]), [true, false]);
    const closed = { ...trigger, rootId: root.id, status: "answered", closedAt: 2 };
    assert.deepEqual(await store.read.triggers.byId(trigger.id), closed);
    assert.deepEqual(await store.read.triggers.ofSession(root.id), [closed]);
  });

  it("a token is revoked once, by itself or with its session", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const token = (hash: string, sessionId: string | null) => ({
      hash,
      kind: sessionId === null ? ("person" as const) : ("session" as const),
      sessionId,
      rootId: sessionId,
      fence: 1,
      name: hash,
      createdAt: 1,
      can: null,
      ceiling: null,
      roots: null,
      scope: null,
      expiresAt: null,
      revokedAt: null,
    });
    await store.addToken(token("person", null));
    await store.write(root.id, (tx) => tx.tokens.add(token("session", root.id)));
    assert.deepEqual(await store.read.tokens.byHash("person"), token("person", null));
    assert.equal(await store.revokeToken("person", 5), true);
    assert.equal(await store.revokeToken("person", 6), false);
    assert.equal((await store.read.tokens.byHash("person"))?.revokedAt, 5);
    await store.write(root.id, (tx) => tx.tokens.revokeOfSession(root.id, 7));
    assert.equal((await store.read.tokens.byHash("session"))?.revokedAt, 7);
    assert.equal(await store.read.tokens.byHash("unknown"), null);
  });

  it("checkpoints come in the order of the transcript", async () => {
    const store = await fresh();
    const root = await treeOf(store);
    const checkpoint = (entryIndex: number) => ({
      id: uuidv7(),
      rootId: root.id,
      sessionId: root.id,
      turnId: null,
      kind: "explicit" as const,
      summary: "so far",
      entities: ["a"],
      constraints: { use: "tabs" },
      entryIndex,
      at: 1,
    });
    const [first, second] = [checkpoint(1), checkpoint(2)];
    await store.write(root.id, async (tx) => {
      await tx.checkpoints.add(second);
      await tx.checkpoints.add(first);
    });
    assert.deepEqual(await store.read.checkpoints.ofSession(root.id), [first, second]);
  });
}
