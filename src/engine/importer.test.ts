import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test, type TestContext } from "node:test";
import { lay, Transcript } from "../history/readers/claude-code/testing/transcript.ts";
import { Writer } from "../history/readers/opencode/testing/session.ts";
import { silentLog } from "../log.ts";
import { until } from "../import/testing/home.ts";
import { openEngine } from "./testing/engine.ts";
import { Importer } from "./importer.ts";

test("an import that fails with the store is logged and does not end the daemon", async (t) => {
  const { family, deps } = await openEngine(t);
  const said: string[] = [];
  const done = Promise.withResolvers<void>();
  const log = {
    ...silentLog,
    error: (_: object, text: string) => said.push(text),
    warn: (_: object, text: string) => {
      said.push(text);
      done.resolve();
    },
  };
  const place = { home: "/nonexistent", env: {} };
  const importer = new Importer({ ...deps, log }, place);
  await family.store.close();
  await importer.run();
  await done.promise;
  await importer.stop();
  assert.deepEqual(said, [
    "import thread failed; restarting it",
    "could not publish the failure of an import",
  ]);
});

/** Enough memory to import a few small files, but not a file with a hundred thousand items. */
const SMALL = { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: 20 };
const CLAUDE_ID = "0f0e8d3a-1111-4222-8333-944445555666";

/** Makes a home with a Claude Code session and an OpenCode database that the test fills. */
async function layHome(t: TestContext, fill: (writer: Writer) => void): Promise<string> {
  const home = mkdtempSync(path.join(tmpdir(), "kinfold-agents-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  const transcript = new Transcript(CLAUDE_ID).user("Do X").says("Done.").endsTurn();
  await lay(path.join(home, ".claude"), { [`-w-x/${CLAUDE_ID}.jsonl`]: transcript });
  const folder = path.join(home, ".local/share/opencode");
  mkdirSync(folder, { recursive: true });
  const writer = new Writer(path.join(folder, "opencode.db"));
  fill(writer);
  writer.close();
  return home;
}

const COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)";

/**
 * Imports with little memory until everything is read. Returns the problems, and the ids that agents gave to
 * the imported sessions.
 */
async function importAll(t: TestContext, home: string) {
  const { family, deps } = await openEngine(t);
  const { store } = family;
  const importer = new Importer(deps, { home, env: {} }, { memory: SMALL });
  await store.imports.ask({ count: 1, exclude: [], at: Date.now() });
  await importer.run();
  t.after(() => importer.stop());
  const scan = await until(async () => {
    const progress = await store.imports.scan();
    return progress?.scan.phase === "watching" && progress;
  });
  const rows = await store.read.history.problems(store.node, 10);
  const problems = [
    ...scan.problems,
    ...rows.map(({ path: file, problem }) => ({ path: file, reason: problem })),
  ];
  const known = await store.read.history.known(store.node, { after: 0, limit: 10 });
  const imported = known.filter(({ kind, readStamp }) => kind === "imported" && readStamp !== null);
  const agentIds = imported.map(({ agentId }) => agentId).toSorted();
  return { agentIds, problems };
}

test("a session on which the import thread dies is set aside and named, and the others are imported", async (t) => {
  const home = await layHome(t, (writer) => {
    writer.session("ses_large").session("ses_small");
    writer.sql.exec(`${COUNT} INSERT INTO message (id, session_id, time_created, time_updated, data)
      SELECT printf('msg_%08d', i), 'ses_large', i, i, '{"role":"user"}' FROM n`);
    writer.user("ses_small", "Do Y");
  });
  const { agentIds, problems } = await importAll(t, home);
  // The thread runs out of memory while it scans `ses_large` or while it reads it. A few megabytes decide
  // which, so `ses_large` may be imported or not.
  assert.deepEqual(
    agentIds.filter((id) => id !== "ses_large"),
    [CLAUDE_ID, "ses_small"],
  );
  assert.equal(problems.length, 1);
  assert.equal(problems[0]?.path, path.join(home, ".local/share/opencode/opencode.db"));
  assert.match(problems[0]?.reason ?? "", /^not imported: the import thread died on .*ses_large \(.*memory/);
});

test("a folder on whose listing the import thread dies is left out and named, and the others are imported", async (t) => {
  const home = await layHome(t, (writer) => {
    writer.sql.exec(`${COUNT} INSERT INTO session
      (id, project_id, slug, directory, title, version, time_created, time_updated)
      SELECT printf('ses_%08d', i), 'p', 's', '/w/large', 'large', '1.18.0', 1, 1 FROM n`);
  });
  const { agentIds, problems } = await importAll(t, home);
  assert.deepEqual(agentIds, [CLAUDE_ID]);
  assert.equal(problems.length, 1);
  assert.equal(problems[0]?.path, path.join(home, ".local/share/opencode"));
  assert.match(problems[0]?.reason ?? "", /^not imported: the import thread died on listing it \(.*memory/);
});
