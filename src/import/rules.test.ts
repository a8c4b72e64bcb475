import assert from "node:assert/strict";
import { aroundWrites } from "../store/testing/around-writes.ts";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import * as fs from "node:fs/promises";
import path from "node:path";
import { describe, it, type TestContext } from "node:test";
import type { AgentStatus } from "../contract/index.ts";
import { lay, Transcript } from "../history/readers/claude-code/testing/transcript.ts";
import { Writer } from "../history/readers/opencode/testing/session.ts";
import { systemProbe } from "../system/process-probe.ts";
import { testPostgres } from "../store/testing/test-postgres.ts";
import { aSession } from "../store/testing/sample.ts";
import { following, type Importing, startImporting, until } from "./testing/home.ts";

const S = "6f0e8d3a-1111-4222-8333-944445555666";
const LATE = "2026-08-01T11:00:00.000Z";
const session = (name: string): string => `-w-app/${name}.jsonl`;
const agentFile = (id: string): string => `-w-app/${S}/subagents/agent-${id}.jsonl`;
const sidecar = (id: string): string => `-w-app/${S}/subagents/agent-${id}.meta.json`;
const about = (toolUseId: string): string => JSON.stringify({ agentType: "general-purpose", toolUseId });
const subagent = (id: string): Transcript =>
  new Transcript(S, { agentId: id, from: 10 }).user(`work of ${id}`);

async function statusesOf({ client }: Importing): Promise<Record<string, AgentStatus>> {
  const { projects } = await client.projects({});
  const { agentStatuses } = await client.projectSession({ projectId: projects[0]?.id ?? "", sessionId: S });
  return agentStatuses;
}

/** Starts a process and registers it in Claude Code's own registry. */
async function register(t: TestContext, claude: string, status: string): Promise<ChildProcess> {
  const living = spawn("sleep", ["600"]);
  t.after(() => living.kill("SIGKILL"));
  const pid = living.pid as number;
  const procStart = systemProbe.startOf(pid);
  const entry = { pid, sessionId: S, cwd: "/w/app", startedAt: 0, procStart, version: "2.1.223", status };
  await fs.mkdir(path.join(claude, "sessions"), { recursive: true });
  await fs.writeFile(path.join(claude, "sessions", `${pid}.json`), JSON.stringify(entry));
  return living;
}

describe("the five cases of the source design", () => {
  it("completed, failed without a result, running, orphaned without a file, and several in parallel", async (t) => {
    const home = await startImporting(t);
    const calls = ["done", "failed", "running", "orphaned"].map((id) => ({
      id: `toolu_${id}`,
      prompt: `work of ${id}`,
    }));
    const main = new Transcript(S).user("Do X").spawns(...calls);
    main.result("toolu_done", "all good", {
      timestamp: LATE,
      toolUseResult: { status: "completed", agentId: "adone", totalDurationMs: 1200, totalTokens: 99 },
    });
    const failed = subagent("afailed").answer([
      { type: "tool_use", id: "t1", name: "Bash", input: { command: "ls" } },
    ]);
    failed.result("t1", "Tool permission stream closed before response received", { isError: true });
    await lay(home.claude, {
      [session(S)]: main,
      [agentFile("adone")]: subagent("adone").says("all good"),
      [sidecar("adone")]: about("toolu_done"),
      [agentFile("afailed")]: failed,
      [sidecar("afailed")]: about("toolu_failed"),
      [agentFile("arunning")]: subagent("arunning").says("I am at it", null),
      [sidecar("arunning")]: about("toolu_running"),
    });
    await register(t, home.claude, "busy");
    await home.import();
    const statuses = await statusesOf(home);
    assert.equal(statuses["adone"]?.state, "completed");
    assert.equal(statuses["adone"]?.durationMs, 1200);
    assert.equal(statuses["arunning"]?.state, "running");
    assert.deepEqual(
      new Set(Object.values(statuses).map(({ toolUseId }) => toolUseId)),
      new Set(calls.map(({ id }) => id)),
    );
    assert.equal((await home.byAgentId(S)).status, "running");
    assert.equal((await home.byAgentId("arunning")).status, "running");
  });

  it("when its process has gone a sub-agent is running no more, and one without a file is orphaned", async (t) => {
    const home = await startImporting(t);
    const calls = ["failed", "running", "orphaned"].map((id) => ({
      id: `toolu_${id}`,
      prompt: `work of ${id}`,
    }));
    const failed = subagent("afailed").answer([
      { type: "tool_use", id: "t1", name: "Bash", input: { command: "ls" } },
    ]);
    failed.result("t1", "Tool permission stream closed before response received", { isError: true });
    await lay(home.claude, {
      [session(S)]: new Transcript(S).user("Do X").spawns(...calls),
      [agentFile("afailed")]: failed,
      [sidecar("afailed")]: about("toolu_failed"),
      [agentFile("arunning")]: subagent("arunning").says("I am at it", null),
      [sidecar("arunning")]: about("toolu_running"),
    });
    const living = await register(t, home.claude, "busy");
    await home.import();
    const { events, ready } = following(t, home);
    await ready;
    assert.equal((await statusesOf(home))["arunning"]?.state, "running");
    living.kill("SIGKILL");
    await once(living, "exit");
    const own = await home.byAgentId("arunning");
    await until(async () =>
      events.some(({ type, sessionId }) => type === "session.updated" && sessionId === own.id),
    );
    const statuses = await statusesOf(home);
    assert.equal(statuses["arunning"]?.state, "interrupted");
    assert.equal(statuses["afailed"]?.state, "failed");
    assert.match(statuses["afailed"]?.error ?? "", /permission stream closed/);
    const orphan = Object.values(statuses).find(({ toolUseId }) => toolUseId === "toolu_orphaned");
    assert.equal(orphan?.state, "orphaned");
  });

  it("a parent is not done while what it started in the background runs", async (t) => {
    const home = await startImporting(t);
    const main = new Transcript(S)
      .user("Do X")
      .spawns({ id: "toolu_b", prompt: "work of ab", input: { run_in_background: true } });
    main.result("toolu_b", "Async agent launched successfully.", {
      toolUseResult: { isAsync: true, status: "async_launched", agentId: "ab", outputFile: "/tmp/x" },
    });
    main.says("It runs in the background").endsTurn();
    await lay(home.claude, {
      [session(S)]: main,
      [agentFile("ab")]: subagent("ab").says("I am at it", null),
      [sidecar("ab")]: about("toolu_b"),
    });
    await register(t, home.claude, "idle");
    await home.import();
    assert.equal((await home.byAgentId("ab")).evidence.state, "running");
    const top = await home.byAgentId(S);
    assert.equal(top.evidence.state, "running");
    assert.match(top.evidence.reason, /sub-agent/);
  });
});

describe("sessions that were read from disk", () => {
  const one = (): Transcript => new Transcript(S).user("Do X").says("Done").endsTurn();

  it("take no message, start nothing, and are not ours to stop", async (t) => {
    const home = await startImporting(t);
    await lay(home.claude, { [session(S)]: one() });
    await home.import();
    const { id } = await home.byAgentId(S);
    await assert.rejects(home.client.prompt({ id, prompt: "go on" }), { code: "not_available" });
    await assert.rejects(home.client.spawn({ id, prompt: "help" }), { code: "not_available" });
    await assert.rejects(home.client.update({ id, limits: { usd: 3 } }), { code: "not_available" });
    await assert.rejects(home.client.cancel({ id }), {
      code: "not_available",
      message: /does not run its process and cannot stop it\. It is not at work/,
    });
    const { counts } = await home.client.health({});
    assert.equal(counts.open + counts.unseen + counts.running, 0);
  });

  it("are waited for until they are done, and give what was said last", async (t) => {
    const home = await startImporting(t);
    const working = subagent("aone").says("I am at it", null);
    await lay(home.claude, {
      [session(S)]: new Transcript(S).user("Do X").spawns({ id: "toolu_one", prompt: "work of aone" }),
      [agentFile("aone")]: working,
      [sidecar("aone")]: about("toolu_one"),
    });
    await register(t, home.claude, "busy");
    await home.import();
    const { id } = await home.byAgentId("aone");
    const still = await home.client.wait({ id, timeoutMs: 50 });
    assert.deepEqual([still.timedOut, still.outcome, still.status], [true, null, "working"]);
    const waiting = home.client.wait({ id, timeoutMs: 60_000 });
    await lay(home.claude, { [agentFile("aone")]: working.says("It is a lamp.") });
    const end = await waiting;
    assert.deepEqual([end.timedOut, end.outcome, end.result], [false, "completed", "It is a lamp."]);
  });

  it("are of the scope of their folder where none was set for them", async (t) => {
    const home = await startImporting(t);
    const main = new Transcript(S, { fields: { cwd: "/w/project" } }).user("Do X").says("Done");
    await lay(home.claude, { [session(S)]: main });
    await home.import();
    assert.equal((await home.byAgentId(S)).scope, "/w/project");
  });

  it("are of the scope that was set for them", async (t) => {
    const home = await startImporting(t, { config: { history: { scope: "past" } } });
    await lay(home.claude, { [session(S)]: one() });
    await home.import();
    assert.equal((await home.byAgentId(S)).scope, "past");
  });

  it("are left out where their project is, and come when it is not any more", async (t) => {
    const home = await startImporting(t);
    const other = "7a0e8d3a-1111-4222-8333-944445555666";
    const elsewhere = new Transcript(other, { fields: { cwd: "/w/secret/deep" } }).user("Hide").says("ok");
    await lay(home.claude, { [session(S)]: one(), [session(other)]: elsewhere });
    const scan = await home.import({ exclude: ["/w/secret"] });
    assert.equal(scan.excluded, 1);
    assert.deepEqual(
      (await home.sessions()).map(({ agentSessionId }) => agentSessionId),
      [S],
    );
    await home.import();
    assert.equal((await home.sessions()).length, 1);
    await home.import({ exclude: [] });
    assert.equal((await home.sessions()).length, 2);
    assert.equal((await home.entries((await home.byAgentId(other)).id)).length, 2);
  });

  it("stay as they are where their project is left out later, and are followed no more", async (t) => {
    const home = await startImporting(t);
    const file = path.join(home.claude, "projects", session(S));
    const below = "7a0e8d3a-1111-4222-8333-944445555666";
    await lay(home.claude, { [session(S)]: new Transcript(S).user("one").says("a") });
    await home.import();
    const { id } = await home.byAgentId(S);
    assert.equal((await home.import({ exclude: ["/w/app"] })).excluded, 1);
    const more = new Transcript(S).user("one").says("a").user("later").rows.slice(2);
    await fs.appendFile(file, more.map((row) => `${JSON.stringify(row)}\n`).join(""));
    await lay(home.claude, { [agentFile("a1")]: subagent("a1").says("later too") });
    const elsewhere = new Transcript(below, { fields: { cwd: "/w/other" } }).user("Seen").says("ok");
    await lay(home.claude, { [session(below)]: elsewhere });
    await until(async () => (await home.sessions()).length === 2);
    const scan = await home.import();
    assert.equal(scan.filesRead, scan.files);
    const texts = async (): Promise<string[]> => (await home.entries(id)).map(({ body }) => body.text);
    assert.deepEqual(await texts(), ["one", "a"]);
    assert.equal((await home.sessions()).length, 2);
    await home.import({ exclude: [] });
    assert.deepEqual(await texts(), ["one", "a", "later"]);
    assert.equal((await home.sessions()).length, 3);
  });

  it("are not there a second time where we run them, and their sub-agents are children of ours", async (t) => {
    const home = await startImporting(t);
    const ours = aSession({
      agent: "claude",
      agentSessionId: S,
      cwd: "/w/app",
      roundOpen: false,
      scope: "team",
      depth: 0,
    });
    await home.store.write(ours.id, (tx) => tx.sessions.add(ours));
    await lay(home.claude, {
      [session(S)]: new Transcript(S).user("Do X").spawns({ id: "toolu_1", prompt: "work of a1" }),
      [agentFile("a1")]: subagent("a1").says("done"),
      [sidecar("a1")]: about("toolu_1"),
    });
    await home.import();
    const sessions = await home.sessions();
    assert.deepEqual(
      sessions.map(({ agentSessionId }) => agentSessionId),
      ["a1"],
    );
    assert.equal(sessions[0]?.parentId, ours.id);
    assert.equal(sessions[0]?.rootId, ours.id);
    assert.equal(sessions[0]?.scope, "team");
    assert.equal((await home.client.get({ id: ours.id })).session.messageCount, ours.messageCount);
    assert.equal((await home.client.entries({ id: ours.id })).total, 0);
    const { projects } = await home.client.projects({});
    const answer = await home.client.projectSession({ projectId: projects[0]?.id ?? "", sessionId: S });
    assert.deepEqual(Object.keys(answer.agentStatuses), ["a1"]);
  });

  it("say before they go on from an earlier point what was left behind, by its first words", async (t) => {
    const home = await startImporting(t);
    const main = new Transcript(S).user("one").says("answer one");
    const back = main.lastId;
    main.endsTurn().user("two, abandoned").says("answer two, abandoned");
    main.user("two again", { parentUuid: back }).says("answer two again").user("three").says("answer three");
    await lay(home.claude, { [session(S)]: main.endsTurn() });
    await home.import();
    const { id } = await home.byAgentId(S);
    const texts = (await home.entries(id)).map(({ body }) => body.text);
    assert.match(
      texts[4] ?? "",
      /^The entries before this, back to and including “two, abandoned”, are no longer/,
    );
    const said = [...texts.slice(0, 4), ...texts.slice(5)];
    const abandoned = ["one", "answer one", "two, abandoned", "answer two, abandoned"];
    assert.deepEqual(said, abandoned.concat("two again", "answer two again", "three", "answer three"));
  });

  it("have a status for each sub-agent, also where two runs of a workflow gave the same id", async (t) => {
    const home = await startImporting(t);
    const run = (n: number): string => `-w-app/${S}/subagents/workflows/wf_${n}/agent-a1.jsonl`;
    const main = new Transcript(S).user("Do");
    for (const n of [1, 2]) {
      main.answer([{ type: "tool_use", id: `t${n}`, name: "Workflow", input: { name: "a" } }]);
      main.result(`t${n}`, `Task ID: w${n}\nRun ID: wf_${n}`);
    }
    await lay(home.claude, {
      [session(S)]: main.says("ok").endsTurn(),
      [run(1)]: subagent("a1").says("half", null),
      [run(2)]: subagent("a1").says("whole"),
    });
    await home.import();
    const { projects } = await home.client.projects({});
    const asked = { projectId: projects[0]?.id ?? "", sessionId: S };
    const answer = await home.client.projectSession(asked);
    assert.deepEqual(Object.keys(answer.agentStatuses).toSorted(), ["wf_1:a1", "wf_2:a1"]);
    assert.equal(Object.keys(answer.sessionIds).length, 2);
    const { page } = await home.client.projectAgent({ ...asked, agentId: "wf_2:a1" });
    assert.deepEqual(
      page.items.map(({ body }) => body.text),
      ["work of a1", "whole"],
    );
  });

  it("have no secrets in them, in the store or on a page", async (t) => {
    const home = await startImporting(t);
    const key = `sk-ant-api03-${"Ab3".repeat(30)}`;
    const main = new Transcript(S).user(`Use ${key}`).says(`I used ${key} as told`).endsTurn();
    await lay(home.claude, { [session(S)]: main });
    await home.import();
    const top = await home.byAgentId(S);
    const { projects } = await home.client.projects({});
    const answer = await home.client.projectSession({ projectId: projects[0]?.id ?? "", sessionId: S });
    const record = await home.store.read.history.bySession(top.id);
    const seen = JSON.stringify([top, await home.entries(top.id), answer.page, record?.facts]);
    assert.ok(!seen.includes(key));
    assert.match(seen, /\[redacted: /);
  });

  it("keep a part of a long text, say so, and give the whole from the file", async (t) => {
    const home = await startImporting(t);
    const long = "word ".repeat(6_000);
    await lay(home.claude, { [session(S)]: new Transcript(S).user("Do X").says(long).endsTurn() });
    await home.import();
    const top = await home.byAgentId(S);
    const [, said] = await home.entries(top.id);
    assert.ok((said?.body.text.length ?? 0) < 9_000);
    assert.match(said?.body.text ?? "", /agent's own file\]$/);
    const { projects } = await home.client.projects({});
    const { page } = await home.client.projectSession({ projectId: projects[0]?.id ?? "", sessionId: S });
    assert.equal(page.items[1]?.body.text.trim(), long.trim());
  });
});

describe("a store that cannot take what is read", () => {
  it("has everything once when it can again, in its order", async (t) => {
    const home = await startImporting(t);
    const main = new Transcript(S).user("Do X");
    for (let i = 0; i < 300; i += 1) main.says(`answer ${i}`, null);
    await lay(home.claude, { [session(S)]: main });
    let asked = 0;
    aroundWrites(home.store, async (rootId, work, write) => {
      const isListed = (await home.store.read.sessions.byId(rootId)) !== null;
      // The session is written first, then its entries in several writes. The second of these fails, so all
      // later writes must be rejected too.
      if (isListed && (asked += 1) === 2) throw new Error("the disk is full");
      return write(work);
    });
    await home.client.import({});
    await until(async () => (await home.client.imported({})).scan.phase === "watching");
    const top = await home.byAgentId(S);
    const texts = (await home.entries(top.id)).map(({ body }) => body.text);
    assert.ok(asked > 2);
    assert.deepEqual(texts, ["Do X", ...Array.from({ length: 300 }, (_, i) => `answer ${i}`)]);
  });

  it("keeps hostile words out of its columns, on PostgreSQL too", async (t) => {
    const server = await testPostgres();
    t.after(() => server.stop());
    const home = await startImporting(t, { config: { store: await server.url() } });
    const fields = { cwd: "/w/\u0000nul", version: "2.1.223\u0000" };
    const main = new Transcript(S, { fields }).user("Do \u0000 X \ud800").says("Done \u0000");
    await lay(home.claude, { [session(S)]: main });
    await home.import();
    const top = await home.byAgentId(S);
    assert.equal(top.cwd, "/w/nul");
    assert.equal(top.scope, "/w/nul");
    assert.equal((await home.entries(top.id)).length, 2);
    await home.stop();
  });
});

describe("a session that was rewound", () => {
  it("has the rows that were left behind marked on its project page, on whichever page they are", async (t) => {
    const home = await startImporting(t);
    const rewound = new Transcript(S, { fields: { cwd: "/w/x" } }).user("Start").says("Begun.").endsTurn();
    const before = rewound.lastId;
    for (let n = 0; n < 40; n += 1) rewound.user(`Wrong ${n}`).says(`Walking ${n}`).endsTurn();
    rewound.user("Right way", { parentUuid: before });
    for (let n = 0; n < 10; n += 1) rewound.says(`There ${n}`).user(`Go on ${n}`);
    await lay(home.claude, { [session(S)]: rewound });
    await home.import();
    const items: { text: string; offPath: boolean }[] = [];
    let cursor: string | undefined;
    do {
      const { page } = await home.client.projectSession({
        projectId: "/w/x",
        sessionId: S,
        limit: 20,
        ...(cursor === undefined ? {} : { cursor }),
      });
      items.unshift(
        ...page.items.map(({ body, offPath }) => ({ text: body.text, offPath: offPath === true })),
      );
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined);
    const left = items.filter(({ offPath }) => offPath).map(({ text }) => text);
    assert.deepEqual(left, Array.from({ length: 40 }, (_, n) => [`Wrong ${n}`, `Walking ${n}`]).flat());
    assert.equal(items.length, 2 + 80 + 21);
  });
});

describe("files that cannot be read", () => {
  it("are named with their reason, and everything else is imported", async (t) => {
    const home = await startImporting(t);
    const name = (digit: number): string => `${digit}f0e8d3a-1111-4222-8333-944445555666`;
    const torn = new Transcript(name(2)).user("Do X").says("Done").text();
    await lay(home.claude, {
      [session(S)]: new Transcript(S).user("Do X").says("Done"),
      [session(name(1))]: "this is no session\nat all\n",
      [session(name(2))]: `${torn}{"broken": \n\u0000\u0000\n{"type":"user"`,
      [session(name(3))]: "",
    });
    await fs.mkdir(path.join(home.claude, "projects", session(name(4))));
    await fs.writeFile(path.join(home.claude, "projects", session(name(5))), Buffer.alloc(4096, 0xff));
    await fs.symlink("/nowhere/at/all", path.join(home.claude, "projects", session(name(7))));
    const scan = await home.import();
    assert.equal(scan.error, null);
    const { problems, scan: counted } = await home.client.imported({ problems: 100 });
    assert.equal(counted.problemCount, problems.length);
    assert.equal((await home.client.imported({ problems: 1 })).scan.problemCount, problems.length);
    const reasons = new Map(
      problems.map(({ path: file, reason }) => [path.basename(file, ".jsonl")[0], reason]),
    );
    assert.match(reasons.get("1") ?? "", /nothing in it is a session of claude: line 1 is not a JSON object/);
    assert.match(reasons.get("2") ?? "", /line 3 is not JSON/);
    assert.match(reasons.get("4") ?? "", /not a file/);
    assert.match(reasons.get("5") ?? "", /nothing in it/);
    assert.match(reasons.get("7") ?? "", /ENOENT|no such file/);
    assert.equal(reasons.has("3"), false);
    const sessions = (await home.sessions()).map(({ agentSessionId }) => agentSessionId);
    assert.deepEqual(new Set(sessions), new Set([S, name(2)]));
  });

  it("are read when they have become what they should be", async (t) => {
    const home = await startImporting(t);
    const file = path.join(home.claude, "projects", session(S));
    await lay(home.claude, { [session(S)]: "nonsense\n" });
    await home.import();
    assert.equal((await home.sessions()).length, 0);
    await fs.writeFile(file, new Transcript(S).user("Do X").says("Done").text());
    const top = await until(async () => (await home.sessions())[0]);
    await until(async () => (await home.entries(top.id)).length === 2);
    assert.deepEqual((await home.client.imported({ problems: 10 })).problems, []);
  });

  it("do not make the sessions gone that were in them", async (t) => {
    const home = await startImporting(t);
    const folder = path.join(home.agents, ".local/share/opencode");
    await fs.mkdir(folder, { recursive: true });
    const file = path.join(folder, "opencode.db");
    const writer = new Writer(file);
    for (const id of ["ses_a", "ses_b"]) writer.session(id).user(id, "Do X");
    writer.close();
    const sessionCount = async (): Promise<number | undefined> => (await home.import()).found[0]?.sessions;
    assert.equal(await sessionCount(), 2);
    await fs.writeFile(file, "this is no database");
    assert.equal(await sessionCount(), 2);
    assert.equal((await home.client.imported({ problems: 10 })).problems.length, 1);
    await fs.rm(file);
    assert.equal(await sessionCount(), undefined);
  });
});
