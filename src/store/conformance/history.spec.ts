import assert from "node:assert/strict";
import { it } from "node:test";
import { uuidv7 } from "uuidv7";
import type { AgentStatus, HistoryScan } from "../../contract/index.ts";
import type { NewHistory, ImportedEntry, SessionRecord, Store } from "../port/store.ts";
import { aSession } from "../testing/sample.ts";

type Fresh = () => Promise<Store>;

const STATUS: AgentStatus = {
  agentId: "a1",
  state: "completed",
  error: null,
  messageCount: 2,
  lastUpdated: 5,
  durationMs: null,
  tokens: null,
  toolUseId: "toolu_1",
  parentAgentId: null,
  depth: 1,
  description: "a part",
  evidence: "its file says so",
  confidence: "certain",
};

function imported(fields: Partial<SessionRecord> = {}): SessionRecord {
  const evidence = { state: "running", reason: "seen", confidence: "likely", at: 1 } as const;
  return aSession({ origin: "imported", source: "import", round: 0, roundOpen: false, evidence, ...fields });
}

function found(session: SessionRecord, fields: Partial<NewHistory> = {}): NewHistory {
  const key = `claude-code:${session.id}`;
  return {
    key,
    node: "local",
    agent: "claude",
    agentId: session.id,
    format: "claude-code",
    path: `/h/${session.id}`,
    found: { key },
    familyKey: key,
    hostKey: null,
    sessionId: session.id,
    rootId: session.rootId,
    kind: "imported",
    stamp: "1",
    sizeBytes: 10,
    problem: null,
    changedAt: 7,
    status: null,
    facts: { facts: { id: session.id }, inline: {} },
    ...fields,
  };
}

async function add(
  store: Store,
  fields: Partial<NewHistory> = {},
): Promise<{ no: number; session: SessionRecord }> {
  const session = imported();
  const no = await store.write(session.id, async (tx) => {
    await tx.sessions.add(session);
    return tx.history.add(found(session, fields));
  });
  return { no, session };
}

function entry(ref: number, text = `text ${ref}`): ImportedEntry {
  return { ref, author: "agent", kind: "text", isSubagent: false, at: ref, body: JSON.stringify({ text }) };
}

/** How every store keeps sessions that were read from disk. */
export function historyRules(fresh: Fresh): void {
  it("an entry from disk is appended once, whatever is read again", async () => {
    const store = await fresh();
    const { no, session } = await add(store);
    const append = (isLive: boolean, ...refs: number[]) =>
      store.write(session.id, (tx) =>
        tx.history.append(
          { no, sessionId: session.id, isLive },
          refs.map((ref) => entry(ref)),
        ),
      );
    assert.equal((await append(false, 1, 2, 2, 3)).appended.length, 3);
    const again = await append(true, 2, 3, 4, 9_007_199_254_740_991);
    assert.equal(again.first, 3);
    assert.deepEqual(
      again.appended.map(({ ref }) => ref),
      [4, 9_007_199_254_740_991],
    );
    const page = await store.read.entries.page(session.id, { limit: 10 });
    assert.deepEqual(page.map(({ index, body }) => [index, body.text]).slice(0, 4), [
      [0, "text 1"],
      [1, "text 2"],
      [2, "text 3"],
      [3, "text 4"],
    ]);
    assert.equal((await store.read.sessions.byId(session.id))?.entryCount, 5);
  });

  it("which entries a session has from its file is known by ref, and who has one", async () => {
    const store = await fresh();
    const { no, session } = await add(store);
    const at = { no, sessionId: session.id, isLive: false };
    const refs = [5, -7, 3, 9_007_199_254_740_991];
    await store.write(session.id, (tx) =>
      tx.history.append(
        at,
        refs.map((ref) => entry(ref)),
      ),
    );
    assert.deepEqual(await store.read.history.refs(no, { after: -1, limit: 2 }), [3, 5]);
    assert.deepEqual(await store.read.history.refs(no, { after: 5, limit: 2 }), [9_007_199_254_740_991]);
    const [known] = await store.read.history.known(store.node, { after: no - 1, limit: 1 });
    const who = { node: store.node, format: known?.format ?? "", ref: 5 };
    assert.equal(await store.read.history.ownerOfRef(who), known?.key);
    assert.equal(await store.read.history.ownerOfRef({ ...who, ref: 6 }), null);
  });

  it("entries of a session that is not there are refused, and leave nothing behind", async () => {
    const store = await fresh();
    const { no, session } = await add(store);
    const at = { no, sessionId: uuidv7(), isLive: false };
    await assert.rejects(store.write(session.id, (tx) => tx.history.append(at, [entry(1)])));
    assert.equal((await store.read.sessions.byId(session.id))?.entryCount, 0);
  });

  it("what is known of a file comes back as it was given, and is found by key, session and family", async () => {
    const store = await fresh();
    const { no, session } = await add(store, { status: STATUS });
    const place = {
      version: 1,
      position: { offset: 12 },
      notes: { token: "sk-looks-like-a-secret-but-is-a-note" },
    };
    const patch = {
      place,
      readStamp: "1",
      badCount: 2,
      bad: [{ line: 1, byteOffset: 0, reason: "is not JSON" }],
    };
    await store.write(session.id, (tx) => tx.history.patch(no, { ...patch, missing: [STATUS] }));
    const key = `claude-code:${session.id}`;
    const record = await store.read.history.byKey(key);
    assert.deepEqual(record?.place, place);
    assert.deepEqual(await store.read.history.bySession(session.id), record);
    assert.deepEqual(await store.read.history.ofFamily(key, { after: 0, limit: 9 }), [record]);
    assert.deepEqual(await store.read.history.ofFamily(key, { after: no, limit: 9 }), []);
    const [status] = await store.read.history.statusesOf(key);
    assert.deepEqual([status?.status, status?.missing], [STATUS, [STATUS]]);
    assert.deepEqual(
      (await store.read.history.problems("local", 5)).map((each) => each.key),
      [key],
    );
  });

  it("a scan gets what it has to compare with, page by page, of its own node", async () => {
    const store = await fresh();
    const first = await add(store);
    const second = await add(store);
    await add(store, { node: "elsewhere" });
    const page = await store.read.history.known("local", { after: 0, limit: 1 });
    assert.deepEqual(
      page.map(({ no, state, depth }) => [no, state, depth]),
      [[first.no, "running", 0]],
    );
    const rest = await store.read.history.known("local", { after: first.no, limit: 10 });
    assert.deepEqual(
      rest.map(({ no }) => no),
      [second.no],
    );
  });

  it("what was left out may be taken in later; anything else keeps its row", async () => {
    const store = await fresh();
    const { no, session } = await add(store, { kind: "excluded", facts: null });
    const again = found(session, { stamp: "2" });
    assert.equal(await store.write(session.id, (tx) => tx.history.add(again)), no);
    assert.equal((await store.read.history.byKey(again.key))?.kind, "imported");
    await store.write(session.id, (tx) => tx.history.add({ ...again, stamp: "3" }));
    assert.equal((await store.read.history.byKey(again.key))?.stamp, "2");
  });

  it("imported sessions at work are listed with those whose round is open, and count for nothing else", async () => {
    const store = await fresh();
    const { session } = await add(store);
    const done = await add(store);
    const evidence = { state: "completed", reason: "done", confidence: "certain", at: 2 } as const;
    await store.write(done.session.id, (tx) => tx.sessions.patch(done.session.id, { evidence }));
    const managed = aSession();
    await store.write(managed.id, (tx) => tx.sessions.add(managed));
    const atWork = await store.read.sessions.list({ visible: "all", atWork: true, limit: 10 });
    assert.deepEqual(new Set(atWork.map(({ id }) => id)), new Set([session.id, managed.id]));
    assert.equal((await store.read.sessions.counts("all")).open, 1);
    assert.deepEqual(await store.read.sessions.withOpenRound("local"), [managed]);
  });

  it("folders are counted by agent, origin and place in the tree, within what is visible", async () => {
    const store = await fresh();
    const root = imported({ cwd: "/w", agent: "claude", agentSessionId: "s-1" });
    const child = imported({ cwd: "/w", rootId: root.id, parentId: root.id, depth: 1 });
    await store.write(root.id, async (tx) => {
      await tx.sessions.add(root);
      await tx.sessions.add(child);
    });
    const folders = await store.read.history.folders("all");
    assert.deepEqual(
      folders.map(({ cwd, isBelow, count, atWork }) => [cwd, isBelow, count, atWork]).toSorted(),
      [
        ["/w", false, 1, 1],
        ["/w", true, 1, 1],
      ],
    );
    assert.deepEqual(await store.read.history.folders(["elsewhere"]), []);
    assert.deepEqual(
      (await store.read.sessions.byAgentSession(null, "s-1")).map(({ id }) => id),
      [root.id],
    );
    assert.deepEqual(await store.read.sessions.byAgentSession("codex", "s-1"), []);
  });

  it("who asks for an import is heard after it is durable, and how far it is can be read", async () => {
    const store = await fresh();
    const heard = Promise.withResolvers<unknown>();
    const off = store.imports.onAsk(() => heard.resolve(store.imports.asked()));
    assert.equal(await store.imports.asked(), null);
    await store.imports.ask({ exclude: ["/x"], count: 1, at: 3 });
    assert.deepEqual(await heard.promise, { exclude: ["/x"], count: 1, at: 3 });
    off();
    const scan = { phase: "listing", files: 3 } as unknown as HistoryScan;
    await store.imports.publish({ scan, problems: [] });
    assert.deepEqual(await store.imports.scan(), { scan, problems: [] });
  });
}
