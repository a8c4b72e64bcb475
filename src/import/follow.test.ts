import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs/promises";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { Event } from "../contract/index.ts";
import { lay, Transcript } from "../history/readers/claude-code/testing/transcript.ts";
import { following, folder, type Importing, startImporting, until } from "./testing/home.ts";

const S = "6f0e8d3a-1111-4222-8333-944445555666";
const A = "a1b2c3d4e5f607182";
const MAIN = `-w-app/${S}.jsonl`;
const AGENT = `-w-app/${S}/subagents/agent-${A}.jsonl`;
const SIDECAR = `-w-app/${S}/subagents/agent-${A}.meta.json`;
const APPEND = `
  const { openSync, writeSync } = require("node:fs");
  const [file, text] = process.argv.slice(1);
  writeSync(openSync(file, "a"), text);
`;

/** Returns a session that has started one sub-agent and waits for it. */
function parent(): Transcript {
  return new Transcript(S).user("Do X").spawns({ id: "toolu_1", prompt: "look" });
}

function child(): Transcript {
  return new Transcript(S, { agentId: A, from: 10 }).user("look");
}

const sidecar = JSON.stringify({
  agentType: "general-purpose",
  description: "does look",
  toolUseId: "toolu_1",
});

async function layFamily(root: string): Promise<void> {
  await lay(root, { [MAIN]: parent(), [AGENT]: child(), [SIDECAR]: sidecar });
}

/** Writes from another process, as an agent does. */
async function append(file: string, text: string): Promise<void> {
  const writer = spawn(process.execPath, ["-e", APPEND, file, text], { stdio: "inherit" });
  assert.deepEqual(await once(writer, "exit"), [0, null]);
}

function after(transcript: Transcript, rows: number): string {
  return transcript.rows
    .slice(rows)
    .map((row) => `${JSON.stringify(row)}\n`)
    .join("");
}

async function importing(t: TestContext, setup: { agents?: string; home?: string } = {}): Promise<Importing> {
  const started = await startImporting(t, setup);
  await layFamily(path.join(started.agents, ".claude"));
  await started.import();
  return started;
}

const projects = (root: string, file: string): string => path.join(root, "projects", file);

describe("while an agent works", () => {
  it("what a sub-agent writes comes over the feed as its own, with its lineage", async (t) => {
    const { claude, client, ...home } = await importing(t);
    const { events, ready } = following(t, { claude, client, ...home });
    await ready;
    const working = child().says("I look", null);
    await append(projects(claude, AGENT), after(working, 1));
    const told = await until(async () => appended(events)[0]);
    const own = await home.byAgentId(A);
    const top = await home.byAgentId(S);
    assert.equal(told.sessionId, own.id);
    assert.equal(told.rootId, top.id);
    assert.equal(told.data["isSubagent"], true);
    assert.equal(told.data["parentId"], top.id);
    assert.equal(told.data["depth"], 1);
    assert.equal(told.data["agentId"], A);
    const entries = await home.entries(own.id);
    assert.equal(entries[Number(told.data["index"])]?.body.text, "I look");
  });

  it("a sub-agent that comes while we watch is in the tree, and told from its first entry", async (t) => {
    const { claude, client, ...home } = await importing(t);
    const { events, ready } = following(t, { claude, client, ...home });
    await ready;
    const other = "b9f8e7d6c5b4a3921";
    const file = projects(claude, AGENT.replace(A, other));
    const written = new Transcript(S, { agentId: other, from: 20 })
      .user("and there")
      .says("I am there", null);
    await fs.writeFile(file, written.text());
    const told = await until(async () => appended(events).find(({ data }) => data["agentId"] === other));
    assert.equal(told.data["isSubagent"], true);
    const own = await home.byAgentId(other);
    assert.deepEqual(
      (await home.entries(own.id)).map(({ body }) => body.text),
      ["and there", "I am there"],
    );
    assert.equal(own.rootId, (await home.byAgentId(S)).id);
  });

  it("the first entries of a sub-agent's sub-agent say whose it is and how deep it stands", async (t) => {
    const { claude, client, ...home } = await startImporting(t);
    const deep = "b9f8e7d6c5b4a3921";
    const middle = child().spawns({ id: "toolu_2", prompt: "deep" });
    await lay(claude, { [MAIN]: parent(), [AGENT]: middle, [SIDECAR]: sidecar });
    await home.import();
    const { events, ready } = following(t, { claude, client, ...home });
    await ready;
    const written = new Transcript(S, { agentId: deep, from: 20 }).user("deep").says("at it", null);
    const about = JSON.stringify({ agentType: "general-purpose", toolUseId: "toolu_2" });
    await lay(claude, { [SIDECAR.replace(A, deep)]: about, [AGENT.replace(A, deep)]: written });
    const told = await until(async () => appended(events).length >= 2 && appended(events));
    const above = await home.byAgentId(A);
    for (const { data } of told) {
      assert.deepEqual([data["agentId"], data["parentId"], data["depth"]], [deep, above.id, 2]);
    }
  });

  it("what comes after a restart has its lineage from its first entry", async (t) => {
    const agents = folder(t, "kinfold-agents-");
    const home = folder(t, "kinfold-import-");
    const first = await importing(t, { agents, home });
    const { id: above } = await first.byAgentId(S);
    await first.stop();
    const from = Date.now();
    const second = await startImporting(t, { agents, home });
    await until(async () => ((await second.client.imported({})).scan.readAt ?? 0) > from);
    const { events, ready } = following(t, second);
    await ready;
    await append(projects(second.claude, AGENT), after(child().says("more", null), 1));
    const told = await until(async () => appended(events)[0]);
    assert.deepEqual([told.data["parentId"], told.data["depth"]], [above, 1]);
  });

  it("a new project with a new session, and then its sub-agent, are there as they come", async (t) => {
    const { claude, client, ...home } = await importing(t);
    const { events, ready } = following(t, { claude, client, ...home });
    await ready;
    const id = "7b0e8d3a-1111-4222-8333-944445555666";
    const project = path.join(claude, "projects", "-w-new");
    await fs.mkdir(project);
    const main = new Transcript(id).user("New").spawns({ id: "toolu_n", prompt: "part" });
    await fs.writeFile(path.join(project, `${id}.jsonl`), main.text());
    await until(async () => appended(events).length >= 2);
    await fs.mkdir(path.join(project, id, "subagents"), { recursive: true });
    const below = new Transcript(id, { agentId: "anew", from: 20 }).user("part").says("at it", null);
    await fs.writeFile(path.join(project, id, "subagents", "agent-anew.jsonl"), below.text());
    await until(async () => appended(events).find(({ data }) => data["agentId"] === "anew"));
    assert.equal((await home.byAgentId("anew")).parentId, (await home.byAgentId(id)).id);
  });

  it("a line written in two halves is told once, when it is whole", async (t) => {
    const { claude, client, ...home } = await importing(t);
    const { events, ready } = following(t, { claude, client, ...home });
    await ready;
    const text = after(child().says("whole", null), 1);
    await append(projects(claude, AGENT), text.slice(0, 40));
    await append(projects(claude, AGENT), text.slice(40));
    await until(async () => appended(events).length > 0);
    const own = await home.byAgentId(A);
    assert.equal((await home.entries(own.id)).length, 2);
  });

  it("its end is an event, and its parent's result says how it ended", async (t) => {
    const { claude, client, ...home } = await importing(t);
    const { events, ready } = following(t, { claude, client, ...home });
    await ready;
    const done = parent().result("toolu_1", "all good", {
      timestamp: "2026-08-01T10:01:00.000Z",
      toolUseResult: { status: "completed", agentId: A, totalDurationMs: 1200, totalTokens: 99 },
    });
    await append(projects(claude, MAIN), after(done, 2));
    const own = await home.byAgentId(A);
    const told = await until(async () =>
      events.find(
        ({ type, sessionId, data }) =>
          type === "session.updated" &&
          sessionId === own.id &&
          (data["evidence"] as { state: string } | undefined)?.state === "completed",
      ),
    );
    assert.ok(told);
    assert.equal((await home.byAgentId(A)).outcome, "completed");
  });

  it("after a restart the same entries are there in the same order, with what was written meanwhile", async (t) => {
    const agents = folder(t, "kinfold-agents-");
    const home = folder(t, "kinfold-import-");
    const first = await importing(t, { agents, home });
    const working = child().says("one", null).says("two", null);
    await append(projects(first.claude, AGENT), after(working, 1));
    const own = await first.byAgentId(A);
    const before = await until(async () => {
      const entries = await first.entries(own.id);
      return entries.length === 3 && entries;
    });
    await first.stop();
    const more = child().says("one", null).says("two", null).says("three", "end_turn");
    await append(projects(first.claude, AGENT), after(more, 3));
    const second = await startImporting(t, { agents, home });
    const entries = await until(async () => {
      const found = await second.entries(own.id);
      return found.length === 4 && found;
    });
    assert.deepEqual(entries.slice(0, 3), before);
    assert.deepEqual(
      entries.map(({ body }) => body.text),
      ["look", "one", "two", "three"],
    );
    await until(async () => (await second.byAgentId(A)).evidence.state === "completed");
  });

  it("a file that is replaced adds what is new and nothing twice", async (t) => {
    const { claude, ...home } = await importing(t);
    const file = projects(claude, AGENT);
    const longer = child().says("before", null).says("after", "end_turn");
    await fs.writeFile(`${file}.new`, longer.text());
    await fs.rename(`${file}.new`, file);
    const own = await home.byAgentId(A);
    await until(async () => (await home.entries(own.id)).length >= 3);
    const texts = (await home.entries(own.id)).map(({ body }) => body.text);
    assert.deepEqual(texts, ["look", "before", "after"]);
  });

  it("a session whose file is gone stays, with all that was read of it", async (t) => {
    const { claude, ...home } = await importing(t);
    await fs.rm(projects(claude, AGENT));
    await home.import();
    const own = await home.byAgentId(A);
    assert.equal((await home.entries(own.id)).length, 1);
    const { projects: known } = await home.client.projects({});
    const { page, session } = await home.client.projectAgent({
      projectId: known[0]?.id ?? "",
      sessionId: S,
      agentId: A,
    });
    assert.equal(session?.id, own.id);
    assert.match(page.problem ?? "", /ENOENT|no such file/);
  });
});

function appended(events: readonly Event[]): Event[] {
  return events.filter(({ type }) => type === "entry.appended");
}
