import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import { lay, Transcript } from "../history/readers/claude-code/testing/transcript.ts";
import { Writer } from "../history/readers/opencode/testing/session.ts";
import { startImporting, until } from "./testing/home.ts";

const S = "0f0e8d3a-1111-4222-8333-944445555666";
/** Sizes to try in turn: on a fast machine, the listing of a small database ends too soon to observe. */
const MESSAGE_COUNTS = [60_000, 240_000, 960_000];

/** Writes a database that takes far longer to list than a transcript, because every message is examined. */
function writeLargeDatabase(folder: string, messageCount: number): void {
  mkdirSync(folder, { recursive: true });
  const writer = new Writer(path.join(folder, "opencode.db"));
  try {
    writer.sql.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${messageCount})
      INSERT INTO message (id, session_id, time_created, time_updated, data)
      SELECT printf('msg_%08d', i), 'ses_1', i, i, '{"role":"user","time":{"created":1}}' FROM n`);
    writer.sql
      .exec(`INSERT INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)
      VALUES ('ses_1', 'p', 's', '/w/large', 'large', '1.18.0', 1, 1)`);
  } finally {
    writer.close();
  }
}

/** Returns whether the database is still being listed when a search finds another agent's transcript. */
async function listingWhenFound(t: TestContext, messageCount: number): Promise<"listing" | "listed"> {
  const home = await startImporting(t);
  writeLargeDatabase(path.join(home.agents, ".local/share/opencode"), messageCount);
  const transcript = new Transcript(S).user("Where is the zebra?").says("In the zoo.").endsTurn();
  await lay(home.claude, { [`-w-x/${S}.jsonl`]: transcript });
  await home.client.import({});
  const hits = await until(async () => {
    const found = await home.client.search({ query: "zebra" });
    return found.hits.length > 0 && found.hits;
  });
  assert.equal(hits.length, 1);
  const { scan } = await home.client.imported({});
  await until(async () => (await home.client.imported({})).scan.listedAt !== null);
  return scan.listedAt === null ? "listing" : "listed";
}

describe("a slow database", () => {
  it("does not hold up the listing, the reading and the search of what other agents left", async (t) => {
    for (const messageCount of MESSAGE_COUNTS) {
      if ((await listingWhenFound(t, messageCount)) === "listing") return;
    }
    assert.fail("the transcript was found only after the database was listed, however large the database");
  });

  it("with 240,000 messages in one session is read to its end", async (t) => {
    const home = await startImporting(t);
    writeLargeDatabase(path.join(home.agents, ".local/share/opencode"), 240_000);
    const scan = await home.import();
    assert.deepEqual([scan.filesRead, scan.problemCount], [1, 0]);
    assert.equal((await home.byAgentId("ses_1")).evidence.state, "interrupted");
  });

  it("with more messages in one session than are held is named, and the others are read", async (t) => {
    const home = await startImporting(t);
    writeLargeDatabase(path.join(home.agents, ".local/share/opencode"), 250_001);
    await lay(home.claude, { [`-w-x/${S}.jsonl`]: new Transcript(S).user("Hello").says("Hi.").endsTurn() });
    await home.import();
    const { problems } = await home.client.imported({ problems: 10 });
    assert.deepEqual(
      problems.map(({ reason }) => reason),
      ["session ses_1 has more than 250000 messages"],
    );
    assert.deepEqual(
      (await home.sessions()).map(({ agentSessionId }) => agentSessionId),
      [S],
    );
  });
});
