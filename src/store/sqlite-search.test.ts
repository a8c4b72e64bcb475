import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate as breath, setTimeout as rest } from "node:timers/promises";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../log.ts";
import { entries } from "./tables/entry.ts";
import type { EntryRecord, Store } from "./port/store.ts";
import { StoreProcess } from "./testing/process.ts";
import { aSession } from "./testing/sample.ts";
import { asked, plant } from "./conformance/search.spec.ts";
import { sessions } from "./tables/session.ts";
import { migrate } from "./sqlite/migrate.ts";
import { openSqlite, type SqliteOptions } from "./sqlite/open.ts";
import { hasWorked } from "./sqlite/own-work.ts";
import { Searches } from "./sqlite/search/search.ts";

let folder = "";
let database = "";
const opened: Store[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kinfold-search-"));
  database = join(folder, "home", "kinfold.db");
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  assert.equal(threads(), 0, "a thread was left behind");
  rmSync(folder, { recursive: true });
});

async function open(options: Partial<SqliteOptions> = {}): Promise<Store> {
  const lock = join(dirname(database), "kinfold.lock");
  const store = await openSqlite({
    path: database,
    lock,
    node: "local",
    boot: uuidv7(),
    log: silentLog,
    searchMs: 10_000,
    ...options,
  });
  opened.push(store);
  return store;
}

/** Returns the number of search threads. The store may also have a thread that checkpoints. */
function threads(): number {
  const { workers } = process.report.getReport() as { workers: { header: { event: string } }[] };
  return workers.filter(({ header }) => header.event.endsWith("[search]")).length;
}

describe("searches of the embedded store", () => {
  it("have no thread before the first, two at most, and none after the store is closed", async () => {
    const store = await open();
    const { find } = await plant(store);
    assert.equal(threads(), 0);
    await find("token");
    assert.equal(threads(), 1);
    const found = await Promise.all(Array.from({ length: 20 }, () => find("token")));
    assert.deepEqual(new Set(found.map(({ total }) => total)), new Set([3]));
    assert.ok(threads() <= 2);
    await opened.pop()?.close();
    assert.equal(threads(), 0);
  });

  it("that take too long are refused with how to narrow them, and those after them are answered", async () => {
    const { find } = await plant(await open());
    await find("token");
    await opened.pop()?.close();
    const hasty = await open({ searchMs: 0 });
    await assert.rejects(hasty.search(asked("token")), {
      code: "search_too_long",
      message: /took too long.*Narrow it/,
    });
    await assert.rejects(hasty.search(asked("token")), { code: "search_too_long" });
    await opened.pop()?.close();
    assert.equal((await (await open()).search(asked("token"))).total, 3);
  });

  it("may take longer where the machine has no time for them, and not where they work as long", () => {
    const isOver = hasWorked(20);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
    assert.equal(isOver(), false);
    const since = process.threadCpuUsage();
    for (let worked = 0; worked < 20_000;) {
      const { user, system } = process.threadCpuUsage(since);
      worked = user + system;
    }
    assert.equal(isOver(), true);
  });

  it("that the store has taken end before it closes, and later ones are refused", async () => {
    const store = await open();
    const { find } = await plant(store);
    await find("token");
    const running = find("token");
    const closing = opened.pop()?.close();
    const outcome = await running.then(
      ({ total }) => total,
      ({ code }: { code: string }) => code,
    );
    assert.ok(outcome === 3 || outcome === "shutting_down", String(outcome));
    await closing;
    await assert.rejects(find("token"), { code: "shutting_down" });
  });

  it("wait while the log is being emptied", async () => {
    await plant(await open());
    const searches = new Searches(database, { log: silentLog, searchMs: 10_000 });
    const emptied = Promise.withResolvers<void>();
    searches.pauseUntil(emptied.promise);
    let isAnswered = false;
    const running = searches.run(asked("token")).then(({ total }) => {
      isAnswered = true;
      return total;
    });
    await breath();
    assert.equal(threads(), 0);
    assert.equal(isAnswered, false);
    emptied.resolve();
    assert.equal(await running, 3);
    await searches.close();
  });

  it("end in a refusal when there are too many of them", async () => {
    await plant(await open());
    const searches = new Searches(database, { log: silentLog, searchMs: 10_000 });
    const emptied = Promise.withResolvers<void>();
    searches.pauseUntil(emptied.promise);
    const waiting = Array.from({ length: 200 }, () => searches.run(asked("token")));
    await assert.rejects(searches.run(asked("token")), { code: "store_busy" });
    emptied.resolve();
    for (const found of await Promise.all(waiting)) assert.equal(found.total, 3);
    await searches.close();
  });

  it("see none of what was pruned", async () => {
    const store = await open();
    const { find, sessions: of } = await plant(store);
    assert.equal((await find("xylophone")).total, 1);
    await store.write(of.d.rootId, async (tx) => {
      await tx.sessions.patch(of.d.id, { roundOpen: false });
      await tx.retention.prune(of.d.id, { olderThan: null, bytesMin: null, limit: 10 });
    });
    assert.equal((await find("xylophone")).total, 0);
  });
});

describe("the parts of the index", () => {
  it("are left alone during writes, are merged when no write comes, and keep every entry", async () => {
    const store = await open();
    const session = aSession();
    await store.write(session.id, (tx) => tx.sessions.add(session));
    const entry = { turnId: null, author: "agent", kind: "text", isSubagent: false } as const;
    for (let n = 0; n < 7; n++) {
      const body = { text: `heron number${n}` };
      await store.write(session.id, (tx) =>
        tx.entries.append(session.id, [{ ...entry, at: Date.now(), body }]),
      );
    }
    assert.equal(parts(), 7);
    for (const since = performance.now(); performance.now() - since < 3_000; await rest(100)) {
      await store.write(session.id, (tx) => tx.sessions.patch(session.id, { title: "still at work" }));
    }
    assert.equal(parts(), 7);
    while (parts() > 1) await rest(50);
    assert.equal(mergedFrom(), 4, "as it was before");
    assert.equal((await store.search(asked("heron"))).total, 7);
    for (let n = 0; n < 7; n++) assert.equal((await store.search(asked(`number${n}`))).total, 1);
  });

  function parts(): number {
    return number("SELECT count(DISTINCT segid) FROM entry_index_idx");
  }

  function mergedFrom(): number {
    return number("SELECT v FROM entry_index_config WHERE k = 'usermerge'");
  }

  function number(statement: string): number {
    const db = new DatabaseSync(database, { readOnly: true });
    try {
      return Object.values(db.prepare(statement).get()!)[0] as number;
    } finally {
      db.close();
    }
  }
});

describe("entries that were written without the index", () => {
  it("are indexed after the start, while new ones are written", async () => {
    const count = 1_500;
    const session = olderStore(count);
    const store = await open();
    const entry = { turnId: null, author: "agent", kind: "text", isSubagent: false } as const;
    await store.write(session.id, (tx) =>
      tx.entries.append(session.id, [{ ...entry, at: Date.now(), body: { text: "heron of today" } }]),
    );
    assert.ok((await store.search(asked("heron"))).hits.length > 0);
    await wholeIn(store);
    assertIndexed(count + 1);
    for (const n of [0, 700, count - 1]) assert.equal((await store.search(asked(`number${n}`))).total, 1);
  });

  it("are all indexed once, the newest day's first, also when the daemon is killed again and again", async () => {
    // On a fast machine, or if this process gets no processor, a few entries are indexed before the kill.
    for (const count of [1_500, 12_000, 96_000]) {
      database = join(folder, String(count), "kinfold.db");
      olderStore(count);
      await killTwice(count);
      const isKilledInTime = unindexed() > 0;
      await wholeIn(await open());
      assertIndexed(count);
      if (isKilledInTime) return;
    }
    assert.fail("it was killed too late to show anything, however many entries there were");
  });

  async function killTwice(count: number): Promise<void> {
    for (const left of [0.8, 0.4]) {
      const process = new StoreProcess("hold", "sqlite", database);
      await process.line();
      while (unindexed() > left * count) await breath();
      await process.kill();
      const { indexed, left: behind } = days();
      assert.ok(indexed >= behind, `day ${indexed} was indexed before day ${behind}`);
    }
  }

  /** Makes a file whose entries were written without the index, as by an older version or an import. */
  function olderStore(count: number): { id: string } {
    mkdirSync(dirname(database), { recursive: true });
    const db = new DatabaseSync(database);
    migrate(db, database);
    const session = aSession();
    const { text, params } = sessions.insert([session]);
    db.prepare(text).run(...params);
    db.prepare("INSERT INTO trees (root_id) VALUES (?)").run(session.id);
    db.exec("BEGIN");
    for (let n = 0; n < count; n++) {
      const record: EntryRecord = {
        rootId: session.id,
        sessionId: session.id,
        index: n,
        turnId: null,
        author: "agent",
        kind: "text",
        isSubagent: false,
        // Spread over four days, oldest first.
        at: 1_780_000_000_000 + n * 200_000,
        body: { text: `heron number${n} ${"and more of it ".repeat(20)}` },
      };
      const insert = entries.insert([record]);
      db.prepare(insert.text).run(...insert.params);
    }
    db.exec("COMMIT");
    db.exec(`UPDATE sessions SET entry_count = ${count}`);
    db.close();
    return session;
  }

  function unindexed(): number {
    const db = new DatabaseSync(database, { readOnly: true });
    const left = db.prepare("SELECT count(*) AS n FROM entries WHERE doc IS NULL").get()?.n;
    db.close();
    return Number(left);
  }

  /** Returns the oldest day with an indexed entry and the newest day with an unindexed one. */
  function days(): { indexed: number; left: number } {
    const db = new DatabaseSync(database, { readOnly: true });
    const day = "at / 86400000";
    const found = db
      .prepare(`SELECT min(${day}) FILTER (WHERE doc IS NOT NULL) AS indexed,
        max(${day}) FILTER (WHERE doc IS NULL) AS left FROM entries`)
      .get();
    db.close();
    return { indexed: Number(found?.indexed), left: Number(found?.left) };
  }

  async function wholeIn(store: Store): Promise<void> {
    while (!(await store.search(asked("heron"))).isWhole) await breath();
  }

  function assertIndexed(count: number): void {
    const db = new DatabaseSync(database, { readOnly: true });
    const docs = db.prepare("SELECT count(DISTINCT doc) AS n FROM entries").get()?.n;
    const heron = db
      .prepare("SELECT count(*) AS n FROM entry_index WHERE entry_index MATCH 'heron'")
      .get()?.n;
    const kept = db.prepare("SELECT count(*) AS n FROM entry_index_docsize").get()?.n;
    db.close();
    assert.deepEqual([docs, heron, kept], [count, count, count]);
  }
});
