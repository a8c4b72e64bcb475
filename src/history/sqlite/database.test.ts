import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { type Database, openDatabase } from "./database.ts";
import { randomFrom } from "../../testing/seeds.ts";

const writer = fileURLToPath(new URL("testing/writer.ts", import.meta.url));

let folder: string;
before(async () => {
  folder = await fs.mkdtemp(join(tmpdir(), "kinfold-sqlite-"));
});
after(() => fs.rm(folder, { recursive: true, force: true }));

async function fresh(): Promise<string> {
  return join(await fs.mkdtemp(join(folder, "db-")), "x.db");
}

function withDatabase<T>(path: string, look: (database: Database) => T): T {
  const database = openDatabase(path);
  try {
    return look(database);
  } finally {
    database.close();
  }
}

function texts(path: string): (string | null)[] {
  return withDatabase(path, (database) =>
    Array.from(database.table("t")?.rows() ?? [], (row) => row.text("a")),
  );
}

async function pictureOf(path: string): Promise<Record<string, string>> {
  const dir = join(path, "..");
  const rows = (await fs.readdir(dir)).toSorted().map(async (name) => {
    const { size, mtimeMs, ctimeMs, mode } = await fs.stat(join(dir, name));
    const hash = createHash("sha1")
      .update(await fs.readFile(join(dir, name)))
      .digest("hex");
    return [name, [hash, size, mtimeMs, ctimeMs, mode].join()];
  });
  return Object.fromEntries(await Promise.all(rows));
}

/** Starts a program that holds the database open. */
async function startWriter(
  test: TestContext,
  path: string,
): Promise<{ child: ChildProcess; run: (sql: string) => Promise<void> }> {
  const child = fork(writer, [path]);
  test.after(() => child.kill("SIGKILL"));
  await once(child, "message");
  const run = async (sql: string): Promise<void> => {
    const done = once(child, "message");
    child.send(sql);
    await done;
  };
  return { child, run };
}

async function stopWriter(child: ChildProcess): Promise<void> {
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

describe("another program's database", () => {
  for (const pageBytes of [512, 4096, 65_536]) {
    it(`with pages of ${pageBytes} bytes gives every value as SQLite does`, async () => {
      const path = await fresh();
      const next = randomFrom(pageBytes);
      const sql = new DatabaseSync(path);
      sql.exec(`PRAGMA page_size=${pageBytes};
        CREATE TABLE "t" (\`id\` TEXT PRIMARY KEY, /* , */ group_id text NOT NULL, n INTEGER, r REAL DEFAULT (1+2), b BLOB, data TEXT,
          CONSTRAINT odd CHECK (n <> 7), UNIQUE (id, n));
        CREATE INDEX by_group ON "t" (\`group_id\`, "n");
        CREATE TABLE later(id INTEGER PRIMARY KEY, x TEXT);`);
      const add = sql.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)");
      const numbers = [0, 1, -1, 127, -128, 32_767, 8_388_607, 2 ** 31, -(2 ** 40), 2 ** 52, null];
      sql.exec("BEGIN");
      for (let index = 0; index < 1500; index += 1) {
        const bytes = Math.floor(next() ** 6 * 30_000);
        const blob = next() < 0.2 ? Buffer.alloc(Math.floor(next() * 2000), index) : null;
        const n = numbers[index % numbers.length] ?? null;
        add.run(`id-${index}`, `g${index % 37}`, n, index / 3, blob, "é".repeat(bytes / 2));
      }
      sql.exec(`COMMIT; DELETE FROM t WHERE rowid % 5 = 0; UPDATE t SET data = data || 'x' WHERE rowid % 7 = 0;
        ALTER TABLE t ADD COLUMN added TEXT DEFAULT 'later'; INSERT INTO later VALUES (77, 'y');`);
      const expected = sql.prepare("SELECT rowid, * FROM t ORDER BY rowid").all();
      withDatabase(path, (database) => {
        const table = database.table("t");
        assert.ok(table);
        assert.deepEqual([...table.columns], ["id", "group_id", "n", "r", "b", "data", "added"]);
        const rows = [...table.rows()];
        assert.equal(rows.length, expected.length);
        for (const [index, row] of rows.entries()) {
          const want = expected[index] as Record<string, unknown>;
          const blob = row.get("b");
          assert.deepEqual(
            [row.rowid, row.get("id"), row.get("group_id"), row.get("n"), row.get("r"), row.get("data")],
            [want["rowid"], want["id"], want["group_id"], want["n"], want["r"], want["data"]],
          );
          assert.deepEqual(blob === null ? null : new Uint8Array(blob as Buffer), want["b"]);
          assert.equal(row.bytes("data"), Buffer.byteLength(String(want["data"])));
          assert.equal(table.at(row.rowid)?.get("id"), want["id"]);
        }
        for (const group of ["g0", "g7", "g36", "g", "", "h"]) {
          const found = Array.from(table.where("group_id", group), (row) => row.rowid).toSorted(
            (a, b) => a - b,
          );
          const want = expected.filter((row) => row["group_id"] === group).map((row) => row["rowid"]);
          assert.deepEqual(found, want, group);
          assert.deepEqual(
            Array.from(table.where("data", group), (row) => row.rowid),
            group === "" ? expected.filter((row) => row["data"] === "").map((row) => row["rowid"]) : [],
          );
        }
        assert.equal(table.at(5), null);
        const later = Array.from(table.rows(777), (row) => row.rowid);
        assert.deepEqual(
          later,
          expected.map((row) => row["rowid"]).filter((rowid) => Number(rowid) > 777),
        );
        assert.equal([...(database.table("later")?.rows() ?? [])][0]?.get("id"), 77);
        assert.equal(database.table("nothing"), null);
      });
      sql.close();
    });
  }

  it("is read up to its last commit while it is written, and no file is created, changed or touched", async (test) => {
    const path = await fresh();
    const { child, run } = await startWriter(test, path);
    await run("PRAGMA journal_mode=WAL; CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('one')");
    let earlier = await pictureOf(path);
    assert.deepEqual(texts(path), ["one"], "everything still stands in the log");
    assert.deepEqual(await pictureOf(path), earlier);
    await run("PRAGMA wal_checkpoint(TRUNCATE)");
    assert.deepEqual(texts(path), ["one"], "the log is empty");
    await run("INSERT INTO t VALUES ('two')");
    await run("BEGIN; INSERT INTO t VALUES ('not yet')");
    earlier = await pictureOf(path);
    assert.deepEqual(texts(path), ["one", "two"]);
    assert.deepEqual(await pictureOf(path), earlier);
    await run("COMMIT");
    await stopWriter(child);
    earlier = await pictureOf(path);
    assert.ok(Object.keys(earlier).includes("x.db-wal"), "what a killed program leaves");
    assert.deepEqual(texts(path), ["one", "two", "not yet"]);
    await fs.rm(`${path}-shm`);
    earlier = await pictureOf(path);
    await fs.chmod(join(path, ".."), 0o555);
    assert.deepEqual(texts(path), ["one", "two", "not yet"]);
    assert.deepEqual(await pictureOf(path), earlier);
    await fs.chmod(join(path, ".."), 0o755);
  });

  it("reports that a writer changed it while it was read", async (test) => {
    const path = await fresh();
    const { child, run } = await startWriter(test, path);
    await run("PRAGMA journal_mode=WAL; CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('one')");
    const database = openDatabase(path);
    await run("INSERT INTO t VALUES ('two')");
    assert.ok(database.isStill(), "what is only added to the log changes nothing");
    assert.equal([...(database.table("t")?.rows() ?? [])].length, 1);
    await run("PRAGMA wal_checkpoint(RESTART)");
    assert.equal(database.isStill(), false, "pages went back into the file");
    database.close();
    const again = openDatabase(path);
    await run("INSERT INTO t VALUES ('three')");
    assert.deepEqual([...(again.table("t")?.rows() ?? [])].length, 2);
    assert.equal(again.isStill(), false, "the log was begun anew");
    again.close();
    await stopWriter(child);
  });

  it("is read up to the last complete commit of a truncated log", async (test) => {
    const path = await fresh();
    const { child, run } = await startWriter(test, path);
    await run("PRAGMA journal_mode=WAL; CREATE TABLE t(a TEXT)");
    for (const word of ["one", "two", "three"]) await run(`INSERT INTO t VALUES ('${word}')`);
    await stopWriter(child);
    const log = await fs.readFile(`${path}-wal`);
    let most = 0;
    for (let end = 0; end <= log.length; end += 97) {
      await fs.writeFile(`${path}-wal`, log.subarray(0, end));
      const count = end < 8000 ? 0 : texts(path).length;
      assert.ok(count >= most);
      most = count;
    }
    log[log.length - 5] = 0xff;
    await fs.writeFile(`${path}-wal`, log);
    assert.deepEqual(texts(path), ["one", "two"], "a page that is not what was written does not count");
  });

  it("gives an error or other values when damaged, but never an endless loop", async () => {
    const path = await fresh();
    const sql = new DatabaseSync(path);
    sql.exec("PRAGMA page_size=512; CREATE TABLE t(a TEXT, g TEXT); CREATE INDEX i ON t(g)");
    for (let index = 0; index < 200; index += 1)
      sql.exec(`INSERT INTO t VALUES ('${"a".repeat(index * 9)}', 'g')`);
    sql.close();
    const bytes = await fs.readFile(path);
    const next = randomFrom(7);
    for (let round = 0; round < 150; round += 1) {
      const broken = Buffer.from(bytes);
      for (let count = 0; count < 1 + round / 20; count += 1) {
        const place =
          next() < 0.5 ? Math.floor(next() * 40) * 512 + Math.floor(next() * 16) : next() * bytes.length;
        broken[Math.floor(place)] = Math.floor(next() * 256);
      }
      const end = next() < 0.2 ? Math.floor(next() * bytes.length) : bytes.length;
      await fs.writeFile(path, broken.subarray(0, end));
      try {
        withDatabase(path, (database) => {
          const table = database.table("t");
          for (const row of table?.rows() ?? []) row.get("a");
          for (const row of table?.where("g", "g") ?? []) row.get("a");
        });
      } catch (error) {
        assert.ok(error instanceof Error && error.message.length > 3);
      }
    }
  });

  it("that is not a database is refused with a reason", async () => {
    const path = await fresh();
    await fs.writeFile(path, "not a database, but long enough to hold a head of one hundred bytes".repeat(9));
    assert.throws(() => openDatabase(path), /not an SQLite database/u);
    await fs.writeFile(path, "");
    assert.throws(() => openDatabase(path), /not an SQLite database/u);
    await fs.rm(path);
    await fs.mkdir(path);
    assert.throws(() => openDatabase(path), /not a file|EISDIR/u);
    const wide = await fresh();
    new DatabaseSync(wide).exec("PRAGMA encoding='UTF-16'; CREATE TABLE t(a)");
    assert.throws(() => openDatabase(wide), /not UTF-8/u);
  });
});
