import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { it } from "node:test";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../log.ts";
import {
  flag,
  json,
  jsonList,
  maybe,
  number,
  readerOf,
  valueOf,
  valuesOf,
  word,
  type Column,
} from "./column.ts";
import { DamagedValue } from "./problem.ts";
import { migrate } from "./sqlite/migrate.ts";
import { openSqlite } from "./sqlite/open.ts";
import { checkpoints } from "./tables/checkpoint.ts";
import { drafts } from "./tables/draft.ts";
import { entries } from "./tables/entry.ts";
import { events, trees } from "./tables/event.ts";
import { histories } from "./tables/history.ts";
import { leases } from "./tables/lease.ts";
import { messages } from "./tables/message.ts";
import { nodes } from "./tables/node.ts";
import { sessions } from "./tables/session.ts";
import { tokens } from "./tables/token.ts";
import { triggers } from "./tables/trigger.ts";
import { turns } from "./tables/turn.ts";
import { aSession } from "./testing/sample.ts";

const TABLES = [
  checkpoints,
  drafts,
  entries,
  events,
  histories,
  leases,
  messages,
  nodes,
  sessions,
  tokens,
  trees,
  triggers,
  turns,
];

interface Made {
  readonly type: "text" | "number";
  readonly isNullable: boolean;
}

/** Compares the columns that the tables declare with the columns of a database. */
function compare(made: (table: string, column: string) => Made | undefined): void {
  const wrong: string[] = [];
  for (const { name, declared } of TABLES) {
    for (const { column, form, isNullable } of declared) {
      const type = form === "number" || form === "flag" ? "number" : "text";
      const found = made(name, column);
      if (found?.type !== type || found.isNullable !== isNullable) wrong.push(`${name}.${column}`);
    }
  }
  assert.deepEqual(wrong, []);
}

it("every column is declared with the type that it has in SQLite, and may be empty where it may there", () => {
  const db = new DatabaseSync(":memory:");
  migrate(db, ":memory:");
  compare((table, column) => {
    const found = db.prepare('SELECT type, "notnull" AS must FROM pragma_table_info(?) WHERE name = ?');
    const row = found.get(table, column);
    // SQLite does not report an INTEGER PRIMARY KEY as NOT NULL, although it is never null.
    const isKey = table === "history_sessions" && column === "no";
    const type = row?.["type"] === "TEXT" ? "text" : "number";
    return row === undefined ? undefined : { type, isNullable: row["must"] === 0 && !isKey };
  });
  db.close();
});

it("every column is declared with the type that it has in PostgreSQL, and may be empty where it may there", () => {
  const schema = readFileSync(new URL("./postgres/schema.sql", import.meta.url), "utf8");
  compare((table, column) => {
    const body = new RegExp(`^CREATE TABLE ${table} \\(\n(.*?)^\\);`, "ms").exec(schema)?.[1] ?? "";
    const line = new RegExp(`^  ${column} (.*?),?$`, "m").exec(body)?.[1];
    if (line === undefined) return undefined;
    return { type: line.startsWith("text") ? "text" : "number", isNullable: !line.includes("NOT NULL") };
  });
});

it("a value that we cannot have written is an error that names it", () => {
  const cases: readonly [Column<unknown>, unknown, RegExp][] = [
    [word(), 5, /t\.c cannot be read, it should be text and is of type number/],
    [word(), null, /should be text and is empty/],
    [number(), "5", /should be a number and is of type string/],
    [flag(), 2, /should be 0 or 1 and is of type number/],
    [json(), "{", /it is not JSON/],
    [json(), "[]", /should be a JSON object and is a list/],
    [json(), "null", /should be a JSON object and is empty/],
    [jsonList(), "{}", /should be a JSON list and is of type object/],
    [maybe(json()), "5", /should be a JSON object and is of type number/],
  ];
  for (const [column, value, words] of cases) {
    assert.throws(
      () => valueOf(value, column, "t.c"),
      (error) => error instanceof DamagedValue && words.test(error.message),
    );
  }
  assert.throws(() => valuesOf([1, "x"], number(), number()), /value 2 of a row/);
});

it("values are read as their columns declare them", () => {
  const read = readerOf<{ id: string; seen: boolean; of: { a: number } | null; list: string[] }>({
    id: word(),
    seen: flag(),
    of: maybe(json()),
    list: jsonList(),
  });
  assert.deepEqual(read(["x", 1, null, '["a"]']), { id: "x", seen: true, of: null, list: ["a"] });
  assert.deepEqual(read(["x", 0, '{"a":1}', "[]"]), { id: "x", seen: false, of: { a: 1 }, list: [] });
});

it("a session with a damaged value is refused by name, and the others can be read", async () => {
  const folder = mkdtempSync(join(tmpdir(), "kinfold-column-"));
  const path = join(folder, "kinfold.db");
  const open = () =>
    openSqlite({ path, lock: `${path}.lock`, node: "local", boot: uuidv7(), log: silentLog });
  const [hurt, whole] = [aSession(), aSession()];
  let store = await open();
  for (const session of [hurt, whole]) await store.write(session.id, (tx) => tx.sessions.add(session));
  await store.close();
  const db = new DatabaseSync(path);
  db.prepare("UPDATE sessions SET usage = '{\"inputTokens\":' WHERE id = ?").run(hurt.id);
  db.close();
  store = await open();
  await assert.rejects(store.read.sessions.byId(hurt.id), {
    name: "DamagedValue",
    message: /sessions\.usage cannot be read, it is not JSON/,
  });
  assert.deepEqual(await store.read.sessions.byId(whole.id), whole);
  await store.close();
  rmSync(folder, { recursive: true });
});
