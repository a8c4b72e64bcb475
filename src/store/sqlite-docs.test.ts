import assert from "node:assert/strict";
import { it } from "node:test";
import { DOCS_PER_SECOND, docsFor, firstDocOf, FullSeconds } from "./sqlite/search/entry-index.ts";
import { Connection } from "./sqlite/connection.ts";
import { type Query, sql } from "./sql.ts";

const AT = 1_800_000_000_000;

it("a second that is known to be full leads to the first after it that is not", () => {
  const full = new FullSeconds();
  assert.equal(full.after(0), 0);
  for (const second of [0, 1, 2, 5]) full.add(second * DOCS_PER_SECOND);
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 6].map((second) => full.after(second * DOCS_PER_SECOND) / DOCS_PER_SECOND),
    [3, 3, 3, 3, 4, 6, 6],
  );
  full.add(3 * DOCS_PER_SECOND);
  assert.equal(full.after(0), 4 * DOCS_PER_SECOND);
});

it("entries of one second that has no number left get later ones, each its own, and few questions are asked", async () => {
  const connection = new Connection(":memory:", { readOnly: false, cacheKb: 1_000, busyMs: 0 });
  await connection.run(sql`CREATE TABLE entries (doc INTEGER)`);
  let asked = 0;
  const counting: Query = {
    all: (statement) => connection.all(statement),
    run: (statement) => connection.run(statement),
    get(statement) {
      asked += 1;
      return connection.get(statement);
    },
  };
  const full = new FullSeconds();
  const given = new Set<number>();
  for (let write = 0; write < 400; write++) {
    const docs = await docsFor(
      counting,
      Array.from({ length: 32 }, () => ({ at: AT })),
      full,
    );
    for (const doc of docs) {
      given.add(doc);
      await connection.run(sql`INSERT INTO entries VALUES (${doc})`);
    }
  }
  connection.db.close();
  assert.equal(given.size, 400 * 32);
  assert.equal(Math.min(...given), firstDocOf(AT));
  assert.equal(Math.max(...given), firstDocOf(AT) + 400 * 32 - 1);
  assert.ok(asked <= 460, `${asked} questions for 400 writes over 50 seconds`);
});
