import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import {
  families,
  layRecorded,
  layTree,
  OLD_SCHEMA,
  type ReadOne,
  readRoot,
  replay,
  shapeOf,
  Writer,
} from "./testing/session.ts";

const TOP = "ses_e1f56034affegamGeABtCoVdaD";
const OK = "ses_e1f55fa9bffe27pXveyaRFgNAJ";
const FAILING = "ses_e1f55f42fffev4ffmXHiDKXhh7";
const SHAPE = [
  `1 ${OK} call_548aaaf1f0797f02fe completed certain`,
  `1 ${FAILING} call_b5c15e6d6a6a839748 failed certain`,
];

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "kinfold-opencode-"));
});
after(() => rm(folder, { recursive: true, force: true }));

async function fresh(): Promise<string> {
  return mkdtemp(join(folder, "root-"));
}

describe("what OpenCode 1.18.33 left in its database", () => {
  it("a session with two sub-agents: one completed, one failed, each below its call", async () => {
    const root = await fresh();
    layRecorded(join(root, "opencode.db")).close();
    const family = (await families(root)).get(TOP);
    assert.deepEqual(shapeOf(family), SHAPE);
    assert.deepEqual([family?.judgement?.state, family?.judgement?.confidence], ["completed", "certain"]);
    const failed = family?.byCall.get("call_b5c15e6d6a6a839748")?.[0];
    assert.match(failed?.status.error ?? "", /scripted hard failure in a subagent/u);
    assert.deepEqual([failed?.status.description, failed?.status.durationMs], ["failing child", 416]);
  });

  it("entries say who wrote them, and facts what was used", async () => {
    const root = await fresh();
    layRecorded(join(root, "opencode.db")).close();
    const read = await readRoot(root);
    const { reading, found } = read.get(TOP) as ReadOne;
    assert.deepEqual(
      reading.entries.map(
        ({ author, kind, body }) => `${author} ${kind} ${body.text.split("\n")[0]?.slice(0, 24)}`,
      ),
      [
        "person text PARENT-SYNC",
        "agent text Spawning.",
        "agent toolCall ok child",
        'tool toolResult <task id="ses_e1f55fa9bf',
        "agent toolCall failing child",
        "tool toolResult Subagent failed (task_id",
        "agent text PARENT DONE: Subagent fa",
      ],
    );
    const { facts } = reading.state;
    assert.deepEqual(
      [
        facts.title,
        facts.firstPrompt,
        facts.cwd,
        facts.model,
        facts.agentVersion,
        facts.messageCount,
        facts.toolUseCount,
      ],
      ["Scripted title", "PARENT-SYNC", "/tmp/agent/work", "scripted/m1", "1.18.33", 4, 2],
    );
    assert.deepEqual(facts.usage, { inputTokens: 300, cachedTokens: 0, outputTokens: 30, usd: 0 });
    const child = read.get(OK) as ReadOne;
    assert.deepEqual([child.found.rootKey, child.found.isSubagent], [found.key, true]);
    const { entries, state } = child.reading;
    assert.equal(entries[0]?.author, "session", "a sub-agent is asked by the session that started it");
    assert.ok(entries.every(({ isSubagent }) => isSubagent));
    assert.equal(entries.find(({ kind }) => kind === "toolResult")?.body.exitCode, 0);
    assert.deepEqual(
      [state.facts.rootId, state.facts.parent?.id, state.facts.agentType, state.facts.title],
      [TOP, TOP, "general", "ok child"],
    );
  });

  it("older tables and the tree of files give the same sessions", async () => {
    const [old, tree] = [await fresh(), await fresh()];
    layRecorded(join(old, "opencode.db"), OLD_SCHEMA).close();
    assert.deepEqual(shapeOf((await families(old)).get(TOP)), SHAPE);
    const writer = layRecorded(":memory:");
    await layTree(tree, writer);
    writer.close();
    assert.deepEqual(shapeOf((await families(tree)).get(TOP)), SHAPE);
    const root = await fresh();
    layRecorded(join(root, "opencode.db")).close();
    const [fromTree, fromDatabase] = [await readRoot(tree), await readRoot(root)];
    for (const id of [TOP, OK, FAILING]) {
      const [a, b] = [fromTree.get(id) as ReadOne, fromDatabase.get(id) as ReadOne];
      assert.deepEqual(a.reading.entries, b.reading.entries);
      assert.deepEqual({ ...a.reading.state.facts, calls: [] }, { ...b.reading.state.facts, calls: [] });
      assert.equal(a.found.key, b.found.key, "its key is the same after it was taken over");
    }
  });

  it("a session that is in the database and in the tree is found once", async () => {
    const root = await fresh();
    const writer = layRecorded(join(root, "opencode.db"));
    await layTree(root, writer);
    writer.close();
    const found = await readRoot(root);
    assert.deepEqual(
      [...found.values()].map(({ found: { path } }) => path),
      [...found].map(() => join(root, "opencode.db")),
    );
  });

  it("reading after every single write gives the same entries in the same order as reading at the end", async () => {
    const root = await fresh();
    await mkdir(root, { recursive: true });
    const writer = new Writer(join(root, "opencode.db"));
    writer.sql.exec("PRAGMA journal_mode=WAL");
    let grown = new Map<string, ReadOne>();
    const stamps = new Set<string>();
    const states = new Set<string>();
    let count = 0;
    for (const type of replay(writer)) {
      count += 1;
      grown = await readRoot(root, grown);
      const stamp = [...grown.values()].map(({ found }) => found.stamp).join();
      if (type.startsWith("message.part") || type.startsWith("session.created")) {
        assert.ok(!stamps.has(stamp), `write ${count}, ${type}, is noticed`);
      }
      stamps.add(stamp);
      const family = (await families(root)).get(TOP);
      states.add(
        shapeOf(family)
          .map((line) => line.split(" ").slice(-2).join(" "))
          .join(", "),
      );
    }
    const whole = await readRoot(root);
    for (const [id, { reading }] of whole) {
      const other = grown.get(id)?.reading;
      assert.deepEqual(other?.entries, reading.entries, id);
      assert.deepEqual(other?.state.facts, reading.state.facts, id);
      assert.equal(other?.wasReset, false);
    }
    assert.deepEqual(shapeOf((await families(root)).get(TOP)), SHAPE);
    writer.close();
    assert.ok(states.has("completed certain, failed certain"));
  });
});
