import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { discoverAll } from "../../../reader.spec.ts";
import { codex } from "../index.ts";
import { session } from "../testing/layouts.ts";
import { event, idAt, meta, prompt, readRoot, spawned, turn, writeRollout } from "../testing/made.ts";

const TOP = idAt(0, "top");
const CHILD = idAt(2, "child");
const DEEP = idAt(3, "deep");

describe("what Codex keeps beside its sessions", () => {
  let folder: string;
  before(async () => {
    folder = await fs.mkdtemp(join(tmpdir(), "kinfold-codex-"));
  });
  after(() => fs.rm(folder, { recursive: true, force: true }));
  const lay = async (): Promise<string> => {
    const root = await fs.mkdtemp(join(folder, "root-"));
    await writeRollout(root, TOP, [meta(0, TOP), ...turn(1, prompt(1, "Go"))]);
    const open = [event(2, "task_started", { turn_id: "t" }), ...prompt(2, "Work")];
    await writeRollout(root, CHILD, [meta(2, CHILD, spawned(TOP, TOP)), ...open]);
    await writeRollout(root, DEEP, [meta(3, DEEP, spawned(CHILD, TOP)), ...open]);
    await fs.writeFile(
      join(root, "session_index.jsonl"),
      JSON.stringify({ id: TOP, thread_name: "Old name" }),
    );
    return root;
  };
  const database = (root: string, version = 5): DatabaseSync => {
    const made = new DatabaseSync(join(root, `state_${version}.sqlite`));
    made.exec(`
      PRAGMA journal_mode = WAL;
      CREATE TABLE threads (id TEXT PRIMARY KEY, title TEXT NOT NULL, thread_source TEXT, name TEXT);
      CREATE TABLE thread_spawn_edges (
        parent_thread_id TEXT NOT NULL, child_thread_id TEXT NOT NULL PRIMARY KEY, status TEXT NOT NULL
      );
    `);
    return made;
  };

  it("names sessions and says who started whom before a file is opened, also while it is written to", async () => {
    const root = await lay();
    database(root, 4).close();
    const writer = database(root);
    writer.exec(`
      INSERT INTO threads VALUES ('${TOP}', 'x', 'user', 'New name'), ('${DEEP}', 'x', 'subagent', NULL);
      INSERT INTO thread_spawn_edges VALUES ('${TOP}', '${CHILD}', 'open'), ('${CHILD}', '${DEEP}', 'closed');
    `);
    const found = await discoverAll(codex, root);
    assert.deepEqual(
      found.map(({ id, isSubagent, rootKey }) => [id, isSubagent, rootKey]),
      [TOP, CHILD, DEEP].map((id) => [id, id !== TOP, `codex:${TOP}`]),
    );
    const { readings, family } = await readRoot(root);
    assert.equal(readings.get(TOP)?.state.facts.title, "New name");
    const states = (await family(TOP)).agents.map(({ status }) => [
      status.agentId,
      status.state,
      status.evidence,
    ]);
    assert.equal(states[0]?.[1], "interrupted");
    assert.match(String(states[1]?.[2]), /^the agent's own index says that it stopped/u);
    const before = found.map(({ stamp }) => stamp);
    writer.exec(`UPDATE thread_spawn_edges SET status = 'closed'`);
    const after = (await discoverAll(codex, root)).map(({ stamp }) => stamp);
    assert.deepEqual(
      after.map((stamp, index) => stamp === before[index]),
      [true, false, true],
    );
    writer.close();
  });

  it("does no harm when it is damaged or contains a cycle", async () => {
    const root = await lay();
    await fs.writeFile(join(root, "state_7.sqlite"), "this is no database");
    assert.equal((await readRoot(root)).readings.get(TOP)?.state.facts.title, "Old name");
    await fs.rm(join(root, "state_7.sqlite"));
    const made = database(root);
    made.exec(
      `INSERT INTO thread_spawn_edges VALUES ('${TOP}', '${CHILD}', 'open'), ('${CHILD}', '${TOP}', 'open')`,
    );
    made.exec(`INSERT INTO threads VALUES ('${DEEP}', 'x', NULL, NULL)`);
    made.close();
    const found = await discoverAll(codex, root);
    assert.deepEqual(
      found.map(({ rootKey }) => rootKey),
      [null, null, null],
    );
    const { readings } = await readRoot(root);
    assert.deepEqual([readings.get(TOP)?.state.facts.isSubagent, readings.size], [false, 3]);
    const other = await fs.mkdtemp(join(folder, "root-"));
    await writeRollout(other, TOP, session(TOP, 0));
    new DatabaseSync(join(other, "state_5.sqlite")).close();
    assert.equal((await discoverAll(codex, other)).length, 1);
  });
});
