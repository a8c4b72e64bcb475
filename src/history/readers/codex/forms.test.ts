import assert from "node:assert/strict";
import * as fs from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { zstdCompressSync } from "node:zlib";
import type { Problem } from "../../port.ts";
import { discoverAll, readAll } from "../../reader.spec.ts";
import { codex } from "./index.ts";
import { flat, IDS, layAll, session } from "./testing/layouts.ts";
import { event, idAt, meta, prompt, type Read, readRoot, userItem, writeRollout } from "./testing/made.ts";

describe("every form of a Codex session", () => {
  let folder: string;
  let root: string;
  let read: Read;
  const fresh = (): Promise<string> => fs.mkdtemp(join(folder, "root-"));
  before(async () => {
    folder = await fs.mkdtemp(join(tmpdir(), "kinfold-codex-"));
    root = await fresh();
    await layAll(root);
    read = await readRoot(root);
  });
  after(() => fs.rm(folder, { recursive: true, force: true }));
  const texts = (id: string): unknown[] =>
    (read.readings.get(id)?.entries ?? []).map(({ author, kind, body }) => [author, kind, body.text]);

  it("compressed, archived and plain sessions read the same", () => {
    const wanted = [
      ["agent", "notice", "<environment_context>\n<cwd>/w/app</cwd>\n</environment_context>"],
      ["person", "text", "Do X"],
      ["agent", "thought", "Thinking."],
      ["agent", "toolCall", "ls"],
      ["tool", "toolResult", "a.txt"],
      ["agent", "text", "Done."],
    ];
    assert.deepEqual(texts(IDS.packed), wanted);
    assert.deepEqual(texts(IDS.archived), wanted);
    const result = read.readings.get(IDS.packed)?.entries[4]?.body;
    assert.deepEqual([result?.ok, result?.exitCode, result?.command], [false, 2, "ls"]);
  });

  it("the oldest files have a first line about the session and no times", () => {
    const facts = read.readings.get(IDS.flat)?.state.facts;
    assert.deepEqual(texts(IDS.flat), [
      ["agent", "notice", "<environment_context>\n</environment_context>"],
      ["person", "text", "How old is this?"],
      ["agent", "toolCall", "ls -l"],
      ["tool", "toolResult", "old"],
      ["agent", "text", "Very old."],
    ]);
    assert.equal(facts?.gitBranch, "main");
    assert.equal(facts?.firstPrompt, "How old is this?");
    assert.equal(facts?.createdAt, Date.parse("2025-05-07T17:24:21.123Z"));
    assert.equal(facts?.ending.kind, "ended");
    assert.equal(facts?.ending.confirmed, false);
  });

  it("the oldest files that stop in a call were cut off", async () => {
    const place = await fresh();
    await writeRollout(place, IDS.flat, flat().slice(0, 5));
    const other = await readRoot(place);
    assert.equal((await other.family(IDS.flat)).judgement?.state, "interrupted");
  });

  it("the last name a session was given is its title", () => {
    assert.equal(read.readings.get(IDS.archived)?.state.facts.title, "The archived one");
    assert.equal(read.readings.get(IDS.packed)?.state.facts.title, null);
  });

  it("the plain file is used if the compressed one exists too", async () => {
    const place = await fresh();
    const id = idAt(0, "both");
    const rows = session(id, 0);
    await writeRollout(place, id, rows.slice(0, 4), { isPacked: true });
    await writeRollout(place, id, rows);
    const found = await discoverAll(codex, place);
    assert.equal(found.length, 1);
    assert.ok(found[0]?.path.endsWith(".jsonl"));
  });

  it("reading continues where it stopped after a session was compressed, archived or unpacked", async () => {
    const place = await fresh();
    const id = idAt(0, "moves");
    const rows = session(id, 0);
    const path = await writeRollout(place, id, rows);
    const [found] = await discoverAll(codex, place);
    assert.ok(found);
    const whole = await readAll(codex, found);
    await fs.writeFile(`${path}.zst`, zstdCompressSync(await fs.readFile(path)));
    await fs.rm(path);
    const again = await readAll(codex, found, { before: whole });
    assert.deepEqual(again, whole, "the old path leads to the compressed file, and nothing is new");
    const [packed] = await discoverAll(codex, place);
    assert.equal(packed?.key, found.key);
    assert.notEqual(packed?.stamp, found.stamp);
    await fs.rm(`${path}.zst`);
    await writeRollout(place, id, [...rows, ...prompt(30, "And Y")], { isArchived: true });
    const [archived] = await discoverAll(codex, place);
    assert.equal(archived?.key, found.key);
    const later = await readAll(codex, archived ?? found, { before: again });
    assert.equal(later.wasReset, false);
    assert.equal(later.entries.at(-1)?.body.text, "And Y");
  });

  it("a session rolled back to an earlier point has the rows up to that point and those after the rollback", () => {
    const own = texts(IDS.reverted).map((entry) => (entry as string[])[2]);
    assert.deepEqual(own, ["One", "One: done", "Another two", "Another two: done"]);
    assert.equal(read.readings.get(IDS.revertedTo), undefined, "it is the same session");
  });

  it("a fork has the rows that it was forked from before its own rows", () => {
    const own = texts(IDS.forked).map((entry) => (entry as string[])[2]);
    assert.deepEqual(own, ["One", "One: done", "Three", "Three: done"]);
    const facts = read.readings.get(IDS.forked)?.state.facts;
    assert.deepEqual([facts?.isSubagent, facts?.rootId], [false, IDS.forked]);
  });

  it("a fork whose beginning is gone has its own rows", async () => {
    const place = await fresh();
    await layAll(place);
    const files = await fs.readdir(join(place, "sessions/2026/08/01"));
    const gone = files.filter((name) => name.includes(IDS.reverted));
    await Promise.all(gone.map((name) => fs.rm(join(place, "sessions/2026/08/01", name))));
    const { entries } = (await readRoot(place)).readings.get(IDS.forked) ?? { entries: [] };
    assert.deepEqual(
      entries.map(({ body }) => body.text),
      ["Three", "Three: done"],
    );
  });

  it("the first of several first records says whose file it is", async () => {
    const place = await fresh();
    const id = idAt(0, "two");
    const rows = session(id, 0);
    await writeRollout(place, id, [...rows, meta(20, id, { cwd: "/elsewhere", cli_version: "9" })]);
    const { facts } = (await readRoot(place)).readings.get(id)?.state ?? {};
    assert.deepEqual([facts?.cwd, facts?.agentVersion], ["/w/app", "0.149.0"]);
  });

  it("a file that is not named like a session is reported, and the others are found", async () => {
    const place = await fresh();
    const id = idAt(0, "named");
    await writeRollout(place, id, session(id, 0));
    const foreign = join(place, "sessions", "rollout-x.jsonl");
    await fs.writeFile(foreign, "this is no session");
    const problems: Problem[] = [];
    const found = await Array.fromAsync(codex.discover(place, (problem) => problems.push(problem)));
    assert.deepEqual([found.length, problems.length], [1, 1]);
    assert.equal(problems[0]?.path, foreign);
    assert.match(problems[0].reason, /not named like a session/u);
  });

  it("a first line of a megabyte is read, and a glance and a page see past it", async () => {
    const place = await fresh();
    const id = idAt(0, "long");
    const [, ...rows] = session(id, 0);
    const first = meta(0, id, { base_instructions: { text: "x".repeat(1024 * 1024) } });
    await writeRollout(place, id, [first, ...rows]);
    const [found] = await discoverAll(codex, place);
    assert.ok(found);
    const { facts, problem } = await codex.glance(found);
    assert.deepEqual([problem, facts.cwd, facts.ending.kind], [null, "/w/app", "ended"]);
    const page = await codex.tail(found, { entriesMax: 1 });
    assert.deepEqual(
      page.entries.map(({ body }) => body.text),
      ["Done."],
    );
  });

  it("the event after a row with the role user decides who wrote it, not its words", async () => {
    const place = await fresh();
    const id = idAt(0, "who");
    const typed = "<environment_context> is what I want to know about";
    await writeRollout(place, id, [
      meta(0, id),
      event(0, "task_started", { turn_id: "t" }),
      userItem(1, "Words of a new kind that the program added"),
      ...prompt(2, typed),
      userItem(3, "# AGENTS.md instructions for /w/app"),
      event(4, "user_message", { message: "Steered" }),
    ]);
    const { entries } = (await readRoot(place)).readings.get(id) ?? { entries: [] };
    assert.deepEqual(
      entries.map(({ author, kind, body }) => [author, kind, body.text]),
      [
        ["agent", "notice", "Words of a new kind that the program added"],
        ["person", "text", typed],
        ["agent", "notice", "# AGENTS.md instructions for /w/app"],
        ["person", "text", "Steered"],
      ],
    );
  });

  it("a page from the tail has the same authors as the whole", async () => {
    for (const found of await discoverAll(codex, root)) {
      const whole = new Map(read.readings.get(found.id)?.entries.map((entry) => [entry.ref, entry]));
      let beforeOffset: number | undefined;
      do {
        const page = await codex.tail(found, { entriesMax: 2, beforeOffset });
        for (const entry of page.entries) {
          const { author, kind, isSubagent } = whole.get(entry.ref) ?? {};
          assert.deepEqual(
            [entry.author, entry.kind, entry.isSubagent],
            [author, kind, isSubagent],
            found.path,
          );
        }
        beforeOffset = page.beforeOffset ?? undefined;
      } while (beforeOffset !== undefined);
    }
  });
});
