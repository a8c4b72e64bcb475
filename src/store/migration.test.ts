import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import pg from "pg";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../log.ts";
import { migrationsIn } from "./migration.ts";
import type { SessionRecord, Store } from "./port/store.ts";
import { addressOf, clientOptions } from "./postgres/connection.ts";
import { openPostgres } from "./postgres/open.ts";
import { numbered, type Sql } from "./sql.ts";
import { openSqlite } from "./sqlite/open.ts";
import { sessions } from "./tables/session.ts";
import type { Table } from "./table.ts";
import { turns } from "./tables/turn.ts";
import { aSession, aTurn } from "./testing/sample.ts";
import { testPostgres } from "./testing/test-postgres.ts";

/** A store as an older Kinfold left it. */
interface Old {
  columns(table: string): Promise<Set<string>>;
  run(statement: Sql): Promise<void>;
  /** Opens the old store with the current Kinfold, which migrates it. */
  open(): Promise<Store>;
}

const folder = mkdtempSync(join(tmpdir(), "kinfold-migration-"));
const server = await testPostgres();
const opened: Store[] = [];
after(async () => {
  for (const store of opened.splice(0)) await store.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** Returns the migrations before the one with this name. */
function before(dialect: "sqlite" | "postgres", name: string) {
  const all = migrationsIn(new URL(`./${dialect}/migrations/`, import.meta.url));
  const at = all.findIndex((each) => each.name.includes(name));
  assert.notEqual(at, -1, `there is no migration ${name}`);
  return all.slice(0, at);
}

function oldSqlite(name: string): Old {
  const path = join(folder, `${name}.db`);
  const db = new DatabaseSync(path);
  const known = before("sqlite", name);
  for (const { text } of known) db.exec(text);
  db.exec(`PRAGMA user_version = ${known.length}`);
  return {
    async columns(table) {
      const rows = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all();
      return new Set(rows.map((row) => String(row["name"])));
    },
    async run({ text, params }) {
      db.prepare(text).run(...params);
    },
    async open() {
      db.close();
      return openSqlite({ path, lock: `${path}.lock`, node: "local", boot: uuidv7(), log: silentLog });
    },
  };
}

async function oldPostgres(name: string): Promise<Old> {
  const url = await server.url();
  const { schema } = addressOf(url);
  const client = new pg.Client(clientOptions(addressOf(url)));
  await client.connect();
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  await client.query("CREATE TABLE migrations (number bigint PRIMARY KEY, name text NOT NULL)");
  for (const each of before("postgres", name)) {
    await client.query(each.text);
    await client.query("INSERT INTO migrations (number, name) VALUES ($1, $2)", [each.number, each.name]);
  }
  return {
    async columns(table) {
      const text = "SELECT column_name AS name FROM information_schema.columns WHERE table_schema = $1";
      const { rows } = await client.query<{ name: string }>(`${text} AND table_name = $2`, [schema, table]);
      return new Set(rows.map((row) => row.name));
    },
    async run({ text, params }) {
      await client.query(numbered(text), [...params]);
    },
    async open() {
      await client.end();
      return openPostgres({ url, node: "local", boot: uuidv7(), log: silentLog, waitMs: 0 });
    },
  };
}

/** Inserts a record into a table that may lack some of today's columns. */
async function addRow<R extends object>(old: Old, table: Table<R>, record: R): Promise<void> {
  const { text, params } = table.insert([record]);
  const names = /\(([^)]*)\)/.exec(text)?.[1]?.split(", ") ?? [];
  const had = await old.columns(table.name);
  const kept = names.flatMap((name, at) => (had.has(name) ? [{ name, value: params[at] ?? null }] : []));
  await old.run({
    text: `INSERT INTO ${table.name} (${kept.map(({ name }) => name).join(", ")}) VALUES (${kept.map(() => "?").join(", ")})`,
    params: kept.map(({ value }) => value),
  });
}

async function addSession(old: Old, session: SessionRecord): Promise<void> {
  await old.run({ text: "INSERT INTO trees (root_id) VALUES (?)", params: [session.rootId] });
  await addRow(old, sessions, session);
}

for (const [kind, make] of Object.entries({ sqlite: oldSqlite, postgres: oldPostgres })) {
  describe(`a store of an older Kinfold (${kind})`, () => {
    it("finds the trees whose open round has a limit of minutes, and no others", async () => {
      const old = await make("minutes");
      const { effective } = aSession();
      const limited = (limits: Record<string, number>, more: object = {}) =>
        aSession({ effective: { ...effective, ...more, limits } });
      const timed = [limited({ turns: 2, minutes: 0.5 }), limited({ minutes: 90 }, { model: "\u0000 }" })];
      const loweredBy = { minutes: "kinfold.yaml:3" };
      const others = [limited({}), limited({ turns: 7 }, { loweredBy, model: '"limits":{"minutes":3}' })];
      for (const session of [...timed, ...others]) await addSession(old, session);
      const store = await old.open();
      opened.push(store);
      const found = await store.read.sessions.timedTrees("local");
      assert.deepEqual(
        found.toSorted(),
        timed.map((session) => session.id),
      );
      const [first] = timed;
      await store.write(first!.id, (tx) => tx.sessions.patch(first!.id, { effective }));
      assert.deepEqual(await store.read.sessions.timedTrees("local"), [timed[1]!.id]);
    });

    it("of a turn that was left running has only its entries as signs of work", async () => {
      const old = await make("signs-of-work");
      const root = aSession();
      const { receipt: _none, ...turn } = { ...aTurn(root.id), rootId: root.id, index: 0 };
      await addSession(old, root);
      await addRow(old, turns, turn);
      const store = await old.open();
      opened.push(store);
      const row = (await store.read.turns.byId(turn.id))!;
      assert.equal(await store.read.drafts.hasBegun(row), false);
      const said = { turnId: turn.id, author: "agent", kind: "text", body: { text: "hm" } } as const;
      await store.write(root.id, async (tx) => {
        await tx.entries.append(root.id, [{ ...said, isSubagent: false, at: 1 }]);
      });
      assert.equal(await store.read.drafts.hasBegun(row), true);
    });
  });
}
