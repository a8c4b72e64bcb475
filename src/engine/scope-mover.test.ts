import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import pg from "pg";
import { uuidv7 } from "uuidv7";
import { parseQuery } from "../search/query.ts";
import { silentLog } from "../log.ts";
import { migrationsIn } from "../store/migration.ts";
import { openStore } from "../store/open.ts";
import type { SessionRecord, Store } from "../store/port/store.ts";
import { addressOf, clientOptions } from "../store/postgres/connection.ts";
import { aChild, aSession } from "../store/testing/sample.ts";
import { testPostgres, type TestPostgres } from "../store/testing/test-postgres.ts";
import { pathsIn } from "../config/index.ts";
import type { EngineDeps } from "./deps.ts";
import { startFake } from "./testing/fake-daemon.ts";
import { ScopeMover } from "./scope-mover.ts";

const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "kinfold-scopes-")));
const top = path.join(folder, "repository");
const below = path.join(top, "a");
const away = path.join(folder, "away");
let server: TestPostgres;
before(async () => {
  for (const each of [below, away, path.join(top, ".git")]) mkdirSync(each, { recursive: true });
  server = await testPostgres();
});
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface TestDatabase {
  readonly config: { store: string; node: string };
  readonly paths: { database: string };
  /** Runs SQL while no store is open. */
  run(text: string): Promise<void>;
}

const databases: Record<"sqlite" | "postgres", () => Promise<TestDatabase>> = {
  async sqlite() {
    const database = path.join(folder, "kinfold.db");
    return {
      config: { store: "sqlite", node: "local" },
      paths: { database },
      run: async (text) => {
        const db = new DatabaseSync(database);
        db.exec(text);
        db.close();
      },
    };
  },
  async postgres() {
    const store = await server.url();
    return {
      config: { store, node: "local" },
      paths: { database: "" },
      run: async (text) => {
        const client = new pg.Client(clientOptions(addressOf(store)));
        await client.connect();
        await client.query(text);
        await client.end();
      },
    };
  },
};

const open = ({ config, paths }: TestDatabase): Promise<Store> =>
  openStore({ config, paths, boot: uuidv7(), log: silentLog, searchMs: 10_000 });

/** Returns the migration's statement that lists the sessions to move. */
function listing(dialect: "sqlite" | "postgres"): string {
  const all = migrationsIn(new URL(`../store/${dialect}/migrations/`, import.meta.url));
  const { text } = all.find(({ name }) => name.includes("scope-moves"))!;
  return text.slice(text.indexOf("INSERT INTO"));
}

async function add(store: Store, session: SessionRecord, entries: number): Promise<void> {
  const entry = { turnId: null, author: "agent", kind: "text", isSubagent: false, at: Date.now() } as const;
  await store.write(session.rootId, async (tx) => {
    await tx.sessions.add(session);
    const body = { text: "the word" };
    await tx.entries.append(
      session.id,
      Array.from({ length: entries }, () => ({ ...entry, body })),
    );
  });
}

async function found(store: Store, scope: string): Promise<number> {
  const parsed = parseQuery("word", Date.now());
  assert.ok(parsed.isOk);
  const { hits } = await store.search({
    query: parsed.query,
    visible: [scope],
    sessionId: null,
    rootId: null,
    sort: "newest",
    limit: 50,
    now: Date.now(),
    from: null,
  });
  return hits.length;
}

const mover = (store: Store): ScopeMover =>
  new ScopeMover({ store, log: silentLog } as unknown as EngineDeps);

for (const dialect of ["sqlite", "postgres"] as const) {
  describe(`sessions of before scopes were folders, on ${dialect}`, () => {
    it("are moved once to their folder's scope with their search index, also when interrupted half-way", async () => {
      const database = await databases[dialect]();
      const first = await open(database);
      const root = aSession({ scope: "default", cwd: below });
      const child = aChild(root, { scope: "default", cwd: away });
      const other = aSession({ scope: "default", cwd: away });
      const named = aSession({ scope: "team", cwd: away });
      await add(first, root, 20);
      await add(first, child, 1);
      await add(first, other, 2);
      await add(first, named, 3);
      await first.close();
      await database.run(listing(dialect));
      const second = await open(database);
      assert.equal(await second.write(root.id, (tx) => tx.scopeMoves.step(root.id, top, 5)), false);
      await second.close();
      const third = await open(database);
      assert.equal((await third.read.scopeMoves.next("local", 10)).length, 3, "it was cut and is known");
      const late = aSession({ scope: "default", cwd: away });
      await add(third, late, 1);
      const grandchild = aChild(child, { scope: "default", cwd: away });
      await add(third, grandchild, 1);
      await mover(third).move();
      assert.deepEqual(await third.read.scopeMoves.next("local", 10), []);
      const scopes = [root, child, other, named, late, grandchild].map(
        async ({ id }) => (await third.read.sessions.byId(id))?.scope,
      );
      assert.deepEqual(await Promise.all(scopes), [top, top, away, "team", "default", top]);
      const counts = [top, away, "team", "default"].map((scope) => found(third, scope));
      assert.deepEqual(await Promise.all(counts), [22, 2, 3, 1]);
      await third.close();
    });
  });
}

it("a daemon moves the remaining sessions when it starts", async (t) => {
  const first = await startFake(t);
  const { session } = await first.client.create({ prompt: "sim> say hello", scope: "default", cwd: away });
  await first.quiet(session.id);
  await first.stop();
  const db = new DatabaseSync(pathsIn(first.home).database);
  db.exec(listing("sqlite"));
  db.close();
  const { store, stop, when } = await startFake(t, { home: first.home });
  const moved = await when(async () => {
    const { scope } = (await store.read.sessions.byId(session.id))!;
    return scope !== "default" && scope;
  });
  await stop();
  assert.equal(moved, away);
});
