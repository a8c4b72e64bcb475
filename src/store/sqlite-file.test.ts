import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, it } from "node:test";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../log.ts";
import type { Store } from "./port/store.ts";
import { StoreCorrupt, StoreLocked, StoreTooNew, StoreUnusable } from "./problem.ts";
import { StoreProcess } from "./testing/process.ts";
import { sqliteSchema } from "./testing/schema.ts";
import { aMessage, anEvent, aSession } from "./testing/sample.ts";
import { migrationsIn } from "./migration.ts";
import { openSqlite, type SqliteOptions } from "./sqlite/open.ts";

let folder = "";
let database = "";
const opened: Store[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kinfold-file-"));
  database = join(folder, "home", "kinfold.db");
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  rmSync(folder, { recursive: true });
});

async function open(options: Partial<SqliteOptions> = {}): Promise<Store> {
  const path = options.path ?? database;
  const store = await openSqlite({
    path,
    lock: `${path}.lock`,
    node: "local",
    boot: uuidv7(),
    log: silentLog,
    ...options,
  });
  opened.push(store);
  return store;
}

async function aTree(store: Store): Promise<string> {
  const root = aSession();
  await store.write(root.id, (tx) => tx.sessions.add(root));
  return root.id;
}

it("what a message held is gone from the file after a WAL checkpoint, once it has landed", async () => {
  const store = await open();
  const rootId = await aTree(store);
  // Lengths from one word to many pages, so that rows move and shrink, and pages become free.
  const bodies = Array.from(
    { length: 300 },
    (_, i) => `password=canary-${i}x ${"word ".repeat((i * i) % 3_000)}`,
  );
  for (const body of bodies) {
    const message = aMessage(rootId, { body, data: { secret: body } });
    await store.write(rootId, (tx) => tx.messages.add(message));
    const move = { status: "landed", landedAt: 1 } as const;
    await store.write(rootId, (tx) => tx.messages.move(message.id, ["queued"], move));
  }
  // While the store's own checkpoint runs, SQLite refuses a second one at once, so this one is retried.
  const db = new DatabaseSync(database, { timeout: 60_000 });
  const checkpoint = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)");
  while (checkpoint.get()?.["busy"] !== 0) await pause(10);
  db.close();
  assert.equal(statSync(`${database}-wal`).size, 0);
  assert.deepEqual(readFileSync(database, "latin1").match(/canary-\d+x/g), null);
});

describe("the write lane", () => {
  it("takes back and revokes a write that awaits something foreign, and goes on", async () => {
    const store = await open();
    const rootId = await aTree(store);
    let late: Promise<unknown> | undefined;
    const gate = Promise.withResolvers<void>();
    const stuck = store.write(rootId, async (tx) => {
      await tx.sessions.patch(rootId, { title: "stuck" });
      await gate.promise;
      late = tx.sessions.patch(rootId, { title: "late" });
      await late;
    });
    const beside = store.write(rootId, (tx) => tx.sessions.patch(rootId, { name: "beside" }));
    await assert.rejects(stuck, /awaited something other than its own transaction/);
    await beside;
    gate.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(late ?? Promise.resolve(), /awaited something other/);
    const root = await store.read.sessions.byId(rootId);
    assert.deepEqual([root?.title, root?.name], [null, "beside"]);
  });

  it("takes a file read for what it is, however fast the disk answers", async () => {
    const store = await open();
    const rootId = await aTree(store);
    const { readFile } = await import("node:fs/promises");
    for (let i = 0; i < 10; i++) {
      const write = store.write(rootId, async (tx) => {
        await readFile(import.meta.filename);
        await tx.sessions.patch(rootId, { title: "foreign" });
      });
      await assert.rejects(write, /awaited something other/);
    }
  });

  it("answers a full disk with a refusal, changes nothing, and lives on", async () => {
    const store = await open({ pageCountMax: 200 });
    const rootId = await aTree(store);
    const small = () => store.write(rootId, (tx) => tx.messages.add(aMessage(rootId)));
    const huge = () =>
      store.write(rootId, async (tx) => {
        tx.append(anEvent(rootId));
        return tx.messages.add(aMessage(rootId, { body: "x".repeat(4_000_000) }));
      });
    await assert.rejects(huge(), { code: "disk_full" });
    const outcomes = await Promise.allSettled([small(), huge(), small()]);
    const kept = outcomes.filter((outcome) => outcome.status === "fulfilled").length;
    assert.equal(await store.read.messages.queuedCount(rootId), kept);
    const { position } = await small();
    assert.equal(position, kept);
    assert.deepEqual(await store.feed.ofTree(rootId, 0, 10), []);
  });

  it("waits for another program's lock without blocking, then goes on", async () => {
    const store = await open();
    const rootId = await aTree(store);
    const other = new DatabaseSync(database);
    other.exec("BEGIN IMMEDIATE");
    const write = store.write(rootId, (tx) => tx.sessions.patch(rootId, { title: "waited" }));
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal((await store.read.sessions.byId(rootId))?.title, null);
    other.exec("COMMIT");
    other.close();
    await write;
    assert.equal((await store.read.sessions.byId(rootId))?.title, "waited");
  });

  it("empties a long log while writers wait, and never keeps the process alive", async () => {
    const leaving = new StoreProcess("leave", "sqlite", database);
    assert.equal(await leaving.line(), "emptied");
    assert.equal(await leaving.end(), 0);
    const store = await open();
    assert.equal((await store.read.sessions.counts("all")).sessions, 1);
  });
});

describe("a store in use", () => {
  it("cannot be opened by another daemon; the error names the process and the time", async () => {
    const holder = new StoreProcess("hold", "sqlite", database);
    await holder.line();
    const lock = join(folder, "home", "kinfold.lock");
    await assert.rejects(open({ lock }), (error) => {
      assert.ok(error instanceof StoreLocked);
      assert.equal(error.holder.pid, holder.child.pid);
      assert.ok((error.holder.since ?? 0) > 0);
      assert.match(error.message, new RegExp(`process ${holder.child.pid}.*since 20`));
      return true;
    });
    assert.equal(await holder.end(), 0);
    await open({ lock });
  });

  it("cannot be opened twice by one process either", async () => {
    await open();
    await assert.rejects(open(), StoreLocked);
  });

  it("killed at any instant has lost nothing it answered, and keeps its epoch", async () => {
    const lock = join(folder, "home", "kinfold.lock");
    let epoch: string | undefined;
    for (let round = 0; round < 3; round++) {
      const writer = new StoreProcess("write", "sqlite", database);
      const [itsEpoch, rootId] = (await writer.line()).split(" ") as [string, string];
      epoch ??= itsEpoch;
      assert.equal(itsEpoch, epoch);
      let answered = -1;
      for (let i = 0; i < 40 + round * 37; i++) answered = Math.max(answered, Number(await writer.line()));
      await writer.kill();
      const store = await open({ lock });
      assert.equal(store.epoch, epoch);
      const kept = await store.read.messages.queued(rootId, 100_000);
      assert.ok(kept.length > answered);
      assert.deepEqual(
        kept.map((message) => message.position),
        kept.map((_, i) => i),
      );
      assert.equal((await store.feed.ofTree(rootId, 0, 100_000)).length, kept.length);
      await opened.pop()?.close();
    }
  });

  const noModes = process.platform === "win32" ? "Windows has no file modes" : false;
  it("belongs to its owner alone", { skip: noModes }, async () => {
    await open();
    assert.equal(statSync(database).mode & 0o777, 0o600);
    assert.equal(statSync(join(folder, "home")).mode & 0o777, 0o700);
    for (const beside of ["-wal", ".lock.json"])
      assert.equal(statSync(`${database}${beside}`).mode & 0o077, 0);
  });
});

describe("a file that cannot be used", () => {
  async function damaged(damage: () => void): Promise<void> {
    const store = await open();
    const rootId = await aTree(store);
    const body = "x".repeat(200_000);
    await store.write(rootId, (tx) => tx.messages.add(aMessage(rootId, { body })));
    await opened.pop()?.close();
    damage();
    const before = createHash("sha256").update(readFileSync(database)).digest("hex");
    await assert.rejects(open(), (error) => {
      assert.ok(error instanceof StoreCorrupt, String(error));
      assert.match(error.message, /damaged.*Nothing was changed.*backup/);
      return true;
    });
    assert.equal(createHash("sha256").update(readFileSync(database)).digest("hex"), before);
  }

  it("because it is not a database says so and is left as it was", () =>
    damaged(() =>
      writeFileSync(database, "this is not a database, but it is long enough to look at".repeat(50)),
    ));

  it("because its end is missing says so and is left as it was", () =>
    damaged(() => truncateSync(database, 20_000)));

  it("because its middle is overwritten says so and is left as it was", () =>
    damaged(() => {
      const bytes = readFileSync(database);
      bytes.fill(0xa5, 4096 * 2, 4096 * 12);
      writeFileSync(database, bytes);
    }));

  it("because a newer Kinfold made it says so", async () => {
    await open();
    await opened.pop()?.close();
    const db = new DatabaseSync(database);
    db.exec("PRAGMA user_version = 999");
    db.close();
    await assert.rejects(open(), StoreTooNew);
  });

  it("because its folder cannot be made says so", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    await assert.rejects(open({ path: join(file, "kinfold.db") }), (error) => {
      assert.ok(error instanceof StoreUnusable);
      assert.match(error.message, /cannot be opened.*KINFOLD_HOME/);
      return true;
    });
  });
});

describe("a backup", () => {
  it("taken while others write is whole, and is another epoch when it is opened", async () => {
    const store = await open();
    const rootId = await aTree(store);
    let writing = true;
    const writer = (async () => {
      while (writing) {
        await store.write(rootId, async (tx) => {
          await tx.messages.add(aMessage(rootId, { body: "y".repeat(20_000) }));
          tx.append(anEvent(rootId));
        });
      }
    })();
    const target = join(folder, "copy.db");
    const { bytes } = await store.backup(target);
    writing = false;
    await writer;
    assert.equal(statSync(target).size, bytes);
    assert.equal(statSync(target).mode & 0o777, 0o600);
    const copy = await open({ path: target });
    assert.notEqual(copy.epoch, store.epoch);
    const kept = await copy.read.messages.queuedCount(rootId);
    assert.equal((await copy.feed.ofTree(rootId, 0, 100_000)).length, kept);
    await opened.pop()?.close();
    const again = await open({ path: target });
    assert.equal(again.epoch, copy.epoch);
  });

  it("is refused where a file is, and leaves nothing half made", async () => {
    const store = await open();
    await aTree(store);
    await assert.rejects(store.backup(database), { code: "invalid_input" });
    const nowhere = join(folder, "nowhere", "copy.db");
    await assert.rejects(store.backup(nowhere));
    assert.equal(existsSync(`${nowhere}.part`), false);
  });

  it("put back by hand is another epoch, also where it was a plain copy", async () => {
    const first = await open();
    await aTree(first);
    await opened.pop()?.close();
    const copy = readFileSync(database);
    const second = await open();
    assert.equal(second.epoch, first.epoch);
    const rootId = await aTree(second);
    await second.write(rootId, async (tx) => tx.append(anEvent(rootId)));
    await opened.pop()?.close();
    writeFileSync(database, copy);
    assert.notEqual((await open()).epoch, first.epoch);
  });
});

describe("the schema", () => {
  it("lowers an API key of before keys had a ceiling to workspace, in any folder", async () => {
    const path = join(folder, "old-keys.db");
    const db = new DatabaseSync(path);
    const all = migrationsIn(new URL("./sqlite/migrations/", import.meta.url));
    const old = all.slice(
      0,
      all.findIndex(({ name }) => name.includes("key-ceilings")),
    );
    for (const { text } of old) db.exec(text);
    db.exec(`PRAGMA user_version = ${old.length}`);
    db.exec(
      `INSERT INTO tokens (hash, kind, name, can, created_at) VALUES ('k', 'outside', 'ci', '["spawn"]', 1), ('p', 'person', 'you', NULL, 1)`,
    );
    db.close();
    const store = await open({ path });
    const { ceiling, roots } = (await store.read.tokens.byHash("k"))!;
    assert.deepEqual({ ceiling, roots }, { ceiling: "workspace", roots: null });
    assert.equal((await store.read.tokens.byHash("p"))?.ceiling, null);
  });

  it("committed is the one the migrations make", async () => {
    await open();
    const db = new DatabaseSync(database, { readOnly: true });
    const made = sqliteSchema(db);
    db.close();
    assert.equal(readFileSync(new URL("./sqlite/schema.sql", import.meta.url), "utf8"), made);
  });

  it("is made once when twenty processes make it at the same time", async () => {
    const path = join(folder, "twenty.db");
    const processes = Array.from({ length: 20 }, () => new StoreProcess("migrateSqlite", "sqlite", path));
    for (const each of processes) assert.equal(await each.line(), "ready");
    const codes = await Promise.all(processes.map((each) => each.end()));
    assert.deepEqual(new Set(codes), new Set([0]));
    const db = new DatabaseSync(path, { readOnly: true });
    assert.equal(sqliteSchema(db), readFileSync(new URL("./sqlite/schema.sql", import.meta.url), "utf8"));
    db.close();
  });
});

it("writers whose writes are committed together go on in several turns of the event loop, in their order", async () => {
  const store = await open();
  const rootId = await aTree(store);
  const turns: number[] = [];
  let turn = 0;
  const writing = Array.from({ length: 32 }, async (_, n) => {
    await store.write(rootId, (tx) => tx.sessions.patch(rootId, { title: String(n) }));
    turns.push(turn);
  });
  const count = (): void => {
    turn += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  await Promise.all(writing);
  clearImmediate(next);
  assert.deepEqual(
    turns,
    turns.toSorted((a, b) => a - b),
  );
  const together = Math.max(...turns.map((each) => turns.filter((other) => other === each).length));
  assert.ok(together <= 8, `${together} writers went on in one turn`);
});
