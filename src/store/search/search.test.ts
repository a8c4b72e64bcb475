import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setImmediate as breath } from "node:timers/promises";
import pg from "pg";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../../log.ts";
import { openStore } from "../open.ts";
import type { EntryHit, Store } from "../port/store.ts";
import { addressOf, clientOptions } from "../postgres/connection.ts";
import { asked, plant, type Planted, QUERIES } from "../conformance/search.spec.ts";
import { testPostgres } from "../testing/test-postgres.ts";

const folder = mkdtempSync(join(tmpdir(), "kinfold-search-"));
const server = await testPostgres();
const stores: Store[] = [];
const planted: Planted[] = [];

before(async () => {
  for (const store of ["sqlite", await server.url()]) {
    planted.push(await plant(await opened(store)));
  }
});
after(async () => {
  for (const store of stores) await store.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

describe("SQLite and PostgreSQL", () => {
  it("give the same hits with the same snippets for every query of the set, in any order", async () => {
    for (const [query] of QUERIES) {
      for (const sort of ["relevance", "newest"] as const) {
        const [embedded, served] = await Promise.all(
          planted.map(async ({ find }) => {
            const found = await find(query, { sort });
            const key = ({ sessionId, index }: EntryHit): string => `${sessionId}/${index}`;
            return { ...found, hits: found.hits.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)) };
          }),
        );
        assert.deepEqual(embedded, served, `${query} by ${sort}`);
      }
    }
  });
});

describe("searches on PostgreSQL", () => {
  it("that take too long are stopped by the server and refused with how to narrow them", async () => {
    const url = await server.url();
    const store = await opened(url, 250);
    await plant(store);
    const other = await client(url);
    await other.query("BEGIN; LOCK TABLE entries IN ACCESS EXCLUSIVE MODE");
    await assert.rejects(store.search(asked("token")), { code: "search_too_long", message: /Narrow it/ });
    await other.query("ROLLBACK");
    assert.equal((await store.search(asked("token"))).total, 3);
    await other.end();
  });

  it("find what an older version left once it has been indexed after the start", async () => {
    const url = await server.url();
    await plant(await opened(url));
    await stores.pop()?.close();
    const other = await client(url);
    await other.query("UPDATE entries SET words = NULL");
    await other.end();
    const store = await opened(url);
    while (!(await store.search(asked("token"))).isWhole) await breath();
    assert.equal((await store.search(asked("token"))).total, 3);
  });
});

async function client(url: string): Promise<pg.Client> {
  const made = new pg.Client(clientOptions(addressOf(url)));
  await made.connect();
  return made;
}

async function opened(store: string, searchMs = 10_000): Promise<Store> {
  const made = await openStore({
    config: { store, node: "local" },
    paths: { database: join(folder, "kinfold.db") },
    boot: uuidv7(),
    log: silentLog,
    searchMs,
  });
  stores.push(made);
  return made;
}
