import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { lay, Transcript } from "../../history/claude-code/transcript.spec.ts";
import { Writer } from "../../history/opencode/session.spec.ts";
import { startImporting, until } from "./home.spec.ts";

const S = "0f0e8d3a-1111-4222-8333-944445555666";
const MESSAGES = 60_000;

/** A database that takes far longer to list than a transcript: every message is looked at. */
function writeLargeDatabase(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const writer = new Writer(path.join(folder, "opencode.db"));
  try {
    writer.sql.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MESSAGES})
      INSERT INTO message (id, session_id, time_created, time_updated, data)
      SELECT printf('msg_%08d', i), 'ses_1', i, i, '{"role":"user","time":{"created":1}}' FROM n`);
    writer.sql
      .exec(`INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)
      VALUES ('ses_1', 'p', 's', '/w/large', 'large', '1.18.0', 1, 1)`);
  } finally {
    writer.close();
  }
}

describe("a slow database", () => {
  it("does not hold up the listing, the reading and the search of what other agents left", async (t) => {
    const home = await startImporting(t);
    writeLargeDatabase(path.join(home.agents, ".local/share/opencode"));
    const transcript = new Transcript(S).user("Where is the zebra?").says("In the zoo.").endsTurn();
    await lay(home.claude, { [`-w-x/${S}.jsonl`]: transcript });
    await home.client.import({});
    const hits = await until(async () => {
      const found = await home.client.search({ query: "zebra" });
      return found.hits.length > 0 && found.hits;
    });
    assert.equal(hits.length, 1);
    const { scan } = await home.client.imported({});
    assert.deepEqual([scan.phase, scan.listedAt], ["listing", null], "the database is still being listed");
    await until(async () => (await home.client.imported({})).scan.listedAt !== null);
  });
});
