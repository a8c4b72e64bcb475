import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { uuidv7 } from "uuidv7";
import { silentLog } from "../log.ts";
import { openStore } from "./open.ts";
import type { Store } from "./port.ts";
import { plant, type Planted, QUERIES } from "./search.spec.ts";
import { testPostgres } from "./test-postgres.ts";

const folder = mkdtempSync(join(tmpdir(), "kinfold-search-"));
const server = await testPostgres();
const stores: Store[] = [];
const planted: Planted[] = [];

before(async () => {
  for (const store of ["sqlite", await server.url()]) {
    const opened = await openStore({
      config: { store, node: "local" },
      paths: { database: join(folder, "kinfold.db") },
      boot: uuidv7(),
      log: silentLog,
    });
    stores.push(opened);
    planted.push(await plant(opened));
  }
});
after(async () => {
  for (const store of stores) await store.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

describe("SQLite and PostgreSQL", () => {
  it("give the same hits in the same order with the same snippets for every query of the set", async () => {
    for (const [query] of QUERIES) {
      for (const sort of ["relevance", "newest"] as const) {
        const [embedded, served] = await Promise.all(planted.map(({ find }) => find(query, { sort })));
        assert.deepEqual(embedded, served, `${query} by ${sort}`);
      }
    }
  });
});
