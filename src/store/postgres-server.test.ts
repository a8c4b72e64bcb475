import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { after, afterEach, describe, it } from "node:test";
import pg from "pg";
import { uuidv7 } from "uuidv7";
import { Refusal } from "../contract/index.ts";
import { silentLog } from "../log.ts";
import { cuttingProxy } from "./testing/cutting-proxy.ts";
import { type Commit, STALE, type Store } from "./port/store.ts";
import { addressOf, clientOptions } from "./postgres/connection.ts";
import { migrate } from "./postgres/migrate.ts";
import { openPostgres } from "./postgres/open.ts";
import { StoreLocked, StoreTooNew, StoreUnusable } from "./problem.ts";
import { StoreProcess } from "./testing/process.ts";
import { postgresSchema } from "./testing/schema.ts";
import { aChild, aMessage, anEvent, aSession } from "./testing/sample.ts";
import { testPostgres } from "./testing/test-postgres.ts";

const server = await testPostgres();
after(() => server.stop());

const opened: Store[] = [];
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

async function open(url: string, options: { node?: string; waitMs?: number } = {}): Promise<Store> {
  const { node = "local", waitMs = 0 } = options;
  const store = await openPostgres({ url, node, boot: uuidv7(), log: silentLog, waitMs });
  opened.push(store);
  return store;
}

async function client(url: string): Promise<pg.Client> {
  const made = new pg.Client(clientOptions(addressOf(url)));
  await made.connect();
  return made;
}

async function aTree(store: Store): Promise<ReturnType<typeof aSession>> {
  const root = aSession();
  await store.write(root.id, (tx) => tx.sessions.add(root));
  return root;
}

describe("two nodes on one server", () => {
  it("admit exactly 8 of 64 children together, because the tree's row is the lock", async () => {
    const url = await server.url();
    const [one, two] = [await open(url, { node: "one" }), await open(url, { node: "two" })];
    const root = await aTree(one);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 64 }, (_, i) =>
        (i % 2 === 0 ? one : two).write(root.id, async (tx) => {
          if ((await tx.sessions.openChildren(root.id)).length >= 8)
            throw new Refusal("limit_children", "full");
          await tx.sessions.add(aChild(root));
          tx.append(anEvent(root.id));
        }),
      ),
    );
    assert.equal(outcomes.filter((outcome) => outcome.status === "fulfilled").length, 8);
    const events = await two.feed.ofTree(root.id, 0, 100);
    assert.deepEqual(
      events.map((event) => event.seq),
      [1, 2, 3, 4, 5, 6, 7, 8],
    );
  });

  it("a writer that waits for the tree's lock while another node raises the fence is late", async () => {
    const url = await server.url();
    const [one, watcher] = [await open(url, { node: "one" }), await client(url)];
    const root = await aTree(one);
    const other = await client(url);
    await other.query("BEGIN");
    await other.query("SELECT 1 FROM trees WHERE root_id = $1 FOR UPDATE", [root.id]);
    const late = one.write(root.id, { session: root.id, fence: root.fence }, async (tx) => {
      await tx.sessions.patch(root.id, { title: "late" });
    });
    const waiting =
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'";
    while ((await watcher.query(waiting)).rowCount === 0);
    await other.query("UPDATE sessions SET fence = fence + 1 WHERE id = $1", [root.id]);
    await other.query("COMMIT");
    assert.equal(await late, STALE);
    assert.equal((await one.read.sessions.byId(root.id))?.title, null);
    await Promise.all([other.end(), watcher.end()]);
  });

  it("make one session of one key, also when both insert at once", async () => {
    const url = await server.url();
    const stores = [await open(url, { node: "one" }), await open(url, { node: "two" })];
    const made = await Promise.all(
      Array.from({ length: 20 }, (_, i) => {
        const root = aSession({ key: "k", keyCaller: "c", keyHash: "h" });
        return (stores[i % 2] as Store).write(root.id, async (tx) => {
          const existing = await tx.sessions.byKey("c", "k");
          if (existing === null) await tx.sessions.add(root);
          return existing?.id ?? root.id;
        });
      }),
    );
    assert.equal(new Set(made).size, 1);
  });

  it("lose no event to a reader that resumes from points while both write to the same trees", async () => {
    const url = await server.url();
    const stores = [await open(url, { node: "one" }), await open(url, { node: "two" })];
    const reader = await open(url, { node: "three" });
    const roots = [await aTree(reader), await aTree(reader)];
    let { xmin } = await reader.feed.point();
    let writing = true;
    const writers = Promise.all(
      stores.flatMap((store) =>
        roots.map(async (root) => {
          for (let i = 0; i < 60; i++) await store.write(root.id, async (tx) => tx.append(anEvent(root.id)));
        }),
      ),
    ).finally(() => (writing = false));
    const seen = new Map(roots.map((root) => [root.id, new Set<number>()]));
    for (let last = false; ; last = !writing) {
      const next = await reader.feed.point();
      for (const { rootId } of await reader.feed.treesSince(xmin)) {
        const first = await reader.feed.firstSince(rootId, xmin);
        const events = first === null ? [] : await reader.feed.ofTree(rootId, first - 1, 1_000);
        for (const event of events) seen.get(rootId)?.add(event.seq);
      }
      xmin = next.xmin;
      if (last) break;
    }
    await writers;
    for (const root of roots) assert.equal(seen.get(root.id)?.size, 120);
  });

  it("hear each other's wakes", async () => {
    const url = await server.url();
    const [one, two] = [await open(url, { node: "one" }), await open(url, { node: "two" })];
    const root = await aTree(one);
    const heard = Promise.withResolvers<Commit>();
    two.onCommit(heard.resolve);
    await one.write(root.id, async (tx) => tx.wake(root.id));
    assert.deepEqual(await heard.promise, { rootIds: [root.id], wakes: [root.id] });
  });
});

describe("a node's row", () => {
  it("held by a live process refuses another; the error says where it runs", async () => {
    const url = await server.url();
    const holder = new StoreProcess("hold", url);
    const [, boot] = (await holder.line()).split(" ") as [string, string];
    const store = await open(url);
    await assert.rejects(store.nodes.register([]), (error) => {
      assert.ok(error instanceof StoreLocked);
      assert.equal(error.holder.pid, holder.child.pid);
      assert.equal(error.holder.host, hostname());
      assert.equal(error.holder.boot, boot);
      return true;
    });
    const waiting = await open(url, { waitMs: 20_000 });
    const registered = waiting.nodes.register([]);
    assert.equal(await holder.end(), 0);
    assert.deepEqual(await registered, { previousBoot: boot });
  });

  it("of a process that was killed is taken over at once, on the same machine", async () => {
    const url = await server.url();
    const holder = new StoreProcess("hold", url);
    const [epoch, boot] = (await holder.line()).split(" ") as [string, string];
    await holder.kill();
    const store = await open(url);
    assert.deepEqual(await store.nodes.register([]), { previousBoot: boot });
    assert.equal(store.epoch, epoch);
  });

  it("that has lapsed or been taken is not renewed", async () => {
    const url = await server.url();
    const store = await open(url);
    await store.nodes.register([]);
    assert.equal(await store.nodes.renew(), true);
    const sql = await client(url);
    await sql.query("UPDATE nodes SET alive_until = alive_until - 40000");
    assert.equal(await store.nodes.renew(), false);
    await store.nodes.register([]);
    assert.equal(await store.nodes.renew(), true);
    await sql.query("UPDATE nodes SET boot = 'another'");
    assert.equal(await store.nodes.renew(), false);
    await sql.end();
  });
});

describe("a connection that breaks", () => {
  it("in the middle of a write makes it run again, and once only", async () => {
    const url = await server.url();
    const store = await open(url);
    const root = await aTree(store);
    const killer = await client(url);
    let runs = 0;
    await store.write(root.id, async (tx) => {
      runs += 1;
      await tx.messages.add(aMessage(root.id));
      if (runs === 1) {
        await killer.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' AND pid <> pg_backend_pid()",
        );
      }
      await tx.sessions.patch(root.id, { title: "done" });
    });
    await killer.end();
    assert.equal(runs, 2);
    assert.equal(await store.read.messages.queuedCount(root.id), 1);
  });

  for (const when of ["before", "after"] as const) {
    it(`${when} the server has the COMMIT neither loses the write nor does it twice`, async () => {
      const direct = new URL(await server.url());
      const proxy = await cuttingProxy(Number(direct.port));
      direct.port = String(proxy.port);
      const store = await open(direct.href);
      const root = await aTree(store);
      for (let i = 0; i < 5; i++) {
        proxy.cutNextCommit(when);
        await store.write(root.id, async (tx) => {
          await tx.messages.add(aMessage(root.id));
          tx.append(anEvent(root.id));
        });
      }
      assert.equal(proxy.cuts, 5);
      const queued = await store.read.messages.queued(root.id, 100);
      assert.deepEqual(
        queued.map((message) => message.position),
        [0, 1, 2, 3, 4],
      );
      assert.equal((await store.feed.ofTree(root.id, 0, 100)).length, 5);
      await opened.pop()?.close();
      await proxy.close();
    });
  }

  it("because the write awaited something else than its transaction is reported as a bug", async () => {
    const url = new URL(await server.url());
    // The short deadline below is meant for one write, not for the migrations and the tree on a busy machine.
    const root = await aTree(await open(url.href));
    const watcher = await client(url.href);
    const idle = "SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'";
    url.searchParams.set("options", "-c idle_in_transaction_session_timeout=500");
    const store = await open(url.href);
    let runs = 0;
    const stuck = store.write(root.id, async (tx) => {
      runs += 1;
      await tx.sessions.patch(root.id, { title: "stuck" });
      while ((await watcher.query(idle)).rowCount !== 0);
      await tx.sessions.patch(root.id, { title: "late" });
    });
    await assert.rejects(stuck, /awaited something other than its own transaction/);
    assert.equal(runs, 2);
    assert.equal((await store.read.sessions.byId(root.id))?.title, null);
    await watcher.end();
  });
});

describe("a server that cannot be used", () => {
  it("says what is wrong and what to do, and never shows the password", async () => {
    const url = new URL(await server.url());
    url.password = "secret";
    url.port = "1";
    await assert.rejects(open(url.href), (error) => {
      assert.ok(error instanceof StoreUnusable);
      assert.match(error.message, /ECONNREFUSED.*Check the address/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
    url.port = new URL(await server.url()).port;
    url.pathname = "/nowhere";
    await assert.rejects(open(url.href), /Create the database first/);
    url.searchParams.set("schema", "x; DROP");
    await assert.rejects(open(url.href), /is not a valid schema name/);
  });

  it("because a newer Kinfold made its schema says so", async () => {
    const url = await server.url();
    await (await open(url)).close();
    const sql = await client(url);
    await sql.query("INSERT INTO migrations (number, name) VALUES (999, 'later')");
    await sql.end();
    await assert.rejects(open(url), StoreTooNew);
  });

  it("has no backup of its own", async () => {
    const store = await open(await server.url());
    await assert.rejects(store.backup("/nowhere"), { code: "not_available" });
  });
});

describe("the schema on the server", () => {
  it("committed is the one the migrations make", async () => {
    const url = await server.url();
    const sql = await client(url);
    await migrate(sql, addressOf(url));
    const made = await postgresSchema(sql);
    await sql.end();
    assert.equal(readFileSync(new URL("./postgres/schema.sql", import.meta.url), "utf8"), made);
  });

  it("is made once when twenty processes make it at the same time", async () => {
    const url = await server.url();
    const processes = Array.from({ length: 20 }, () => new StoreProcess("migratePostgres", url));
    for (const each of processes) assert.equal(await each.line(), "ready");
    const codes = await Promise.all(processes.map((each) => each.end()));
    assert.deepEqual(new Set(codes), new Set([0]));
    const sql = await client(url);
    assert.equal(
      await postgresSchema(sql),
      readFileSync(new URL("./postgres/schema.sql", import.meta.url), "utf8"),
    );
    await sql.end();
  });

  it("restored elsewhere is another epoch", async () => {
    const url = await server.url();
    const first = await open(url);
    const schema = addressOf(url).schema;
    await opened.pop()?.close();
    const sql = await client(url);
    await sql.query(`ALTER SCHEMA ${schema} RENAME TO ${schema}_old`);
    await sql.query(`CREATE SCHEMA ${schema}`);
    for (const table of ["migrations", "meta"]) {
      await sql.query(`CREATE TABLE ${table} (LIKE ${schema}_old.${table} INCLUDING ALL)`);
      await sql.query(`INSERT INTO ${table} SELECT * FROM ${schema}_old.${table}`);
    }
    await sql.end();
    assert.notEqual((await open(url)).epoch, first.epoch);
    await opened.pop()?.close();
  });
});
