import assert from "node:assert/strict";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { discoverAll, readAll } from "../../reader.spec.ts";
import { replaysOf } from "../../state/trees.ts";
import { claudeCode } from "./index.ts";
import { agent, families, lay, notice, shapeOf, Transcript } from "./testing/transcript.ts";

const S = "11111111-1111-4111-8111-111111111111";
const T = "22222222-2222-4222-8222-222222222222";
const A = "a0000000000000001";
const B = "a0000000000000002";
const C = "a0000000000000003";
const MAIN = `-w-app/${S}.jsonl`;

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "kinfold-claude-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const main = (session = S): Transcript => new Transcript(session).user("Do X");
const child = (agentId: string, prompt: string, session = S): Transcript =>
  new Transcript(session, { agentId, from: 2 }).user(prompt).says("Fine");
const at = (agentId: string, ending = "jsonl"): string => `-w-app/${S}/subagents/agent-${agentId}.${ending}`;
const done = (agentId: string) => ({ toolUseResult: { status: "completed", agentId } });
const tail = (agentId: string): string =>
  `Fine\nagentId: ${agentId} (use SendMessage with to: '${agentId}' to continue this agent)\n<usage>total_tokens: 5</usage>`;
const family = async () => {
  const found = (await families(root)).get(S);
  assert.ok(found);
  return found;
};

describe("the call that started a sub-agent is found", () => {
  it("by its sidecar, also when the spawn never returned", async () => {
    await lay(root, {
      [MAIN]: main().spawns({ id: "t1", prompt: "Look" }),
      [at(A)]: child(A, "Something else"),
      [at(A, "meta.json")]: { agentType: "Explore", toolUseId: "t1", spawnDepth: 1 },
    });
    assert.deepEqual(shapeOf(await family()), [`1 ${A} t1 completed likely`]);
    assert.equal(agent(await family(), A).link, "its sidecar names the call");
  });

  it("by the structured result, the result's own last lines, a notification, or the prompt", async () => {
    const parent = main().spawns({ id: "t1", prompt: "One" }).result("t1", "Fine", done(A));
    parent.spawns({ id: "t2", prompt: "Two" }).result("t2", tail(B));
    parent.spawns({ id: "t3", prompt: "Three" }).result("t3", "Async", { toolUseResult: { isAsync: true } });
    parent.user(notice(C, "t3", "completed"), { origin: { kind: "task-notification" } });
    parent.spawns({ id: "t4", prompt: "  Look at\n y  " });
    await lay(root, {
      [MAIN]: parent,
      [at(A)]: child(A, "1"),
      [at(B)]: child(B, "2"),
      [at(C)]: child(C, "3"),
      [at("a4")]: child("a4", "look at Y"),
    });
    const found = await family();
    assert.deepEqual(
      [A, B, C, "a4"].map((id) => agent(found, id).status.toolUseId),
      ["t1", "t2", "t3", "t4"],
    );
  });

  it("never by a prompt that two calls have, nor against a name", async () => {
    const parent = main().spawns(
      { id: "t1", prompt: "Same" },
      { id: "t2", prompt: "Same" },
      { id: "t3", prompt: "Own", input: { name: "ann" } },
    );
    await lay(root, {
      [MAIN]: parent,
      [at(A)]: child(A, "Same"),
      [at(B)]: child(B, "Own"),
      [at(B, "meta.json")]: { agentType: "x", name: "bob" },
    });
    const found = await family();
    for (const id of [A, B]) {
      const { status, link } = agent(found, id);
      assert.deepEqual([status.toolUseId, status.depth, link], [null, 1, "no link to a call was found"]);
    }
  });

  it("inside a sub-agent, at every depth, where there is no structured result", async () => {
    const first = new Transcript(S, { agentId: A, from: 2 }).user("One").spawns({ id: "t2", prompt: "Two" });
    const second = new Transcript(S, { agentId: B, from: 4 })
      .user("Two")
      .spawns({ id: "t3", prompt: "Three" });
    await lay(root, {
      [MAIN]: main()
        .spawns({ id: "t1", prompt: "One" })
        .result("t1", "Fine", done(A))
        .says("Done")
        .endsTurn(),
      [at(A)]: first.result("t2", tail(B)).says("Fine"),
      [at(B)]: second.result("t3", tail(C)).says("Fine"),
      [at(C)]: child(C, "Three"),
    });
    const found = await family();
    assert.deepEqual(shapeOf(found), [
      `1 ${A} t1 completed certain`,
      `2 ${B} t2 completed certain`,
      `3 ${C} t3 completed certain`,
    ]);
    assert.deepEqual(
      [B, C].map((id) => agent(found, id).status.parentAgentId),
      [A, B],
    );
  });

  it("links that lead in a circle are cut, and nobody is lost", async () => {
    await lay(root, {
      [MAIN]: main().says("Done").endsTurn(),
      [at(A)]: new Transcript(S, { agentId: A }).user("One").spawns({ id: "t1", prompt: "x" }),
      [at(A, "meta.json")]: { toolUseId: "t2" },
      [at(B)]: new Transcript(S, { agentId: B }).user("Two").spawns({ id: "t2", prompt: "y" }),
      [at(B, "meta.json")]: { toolUseId: "t1" },
    });
    const found = await family();
    assert.deepEqual(
      found.agents.map(({ status }) => status.depth),
      [1, 2],
    );
  });
});

describe("layouts", () => {
  it("2025: sub-agents of two sessions in one folder are distinguished by their rows", async () => {
    const task = { tool: "Task" };
    await lay(root, {
      [MAIN]: main()
        .spawns({ id: "t1", prompt: "One", ...task })
        .result("t1", "Fine", done("a34f87f"))
        .says("Done"),
      [`-w-app/${T}.jsonl`]: main(T)
        .spawns({ id: "t2", prompt: "Two", ...task })
        .result("t2", "Fine", done("a86e430"))
        .says("Done"),
      "-w-app/agent-a34f87f.jsonl": child("a34f87f", "One"),
      "-w-app/agent-a86e430.jsonl": child("a86e430", "Two", T),
      "-w-app/subagents/agent-b1.jsonl": child("b1", "Other"),
    });
    const all = await families(root);
    assert.deepEqual(
      all
        .get(S)
        ?.agents.map(({ status }) => status.agentId)
        .toSorted(),
      ["a34f87f", "b1"],
    );
    assert.deepEqual(
      all.get(T)?.agents.map(({ status }) => status.agentId),
      ["a86e430"],
    );
  });

  it("before that: each sidechain inside the session's own file is a separate sub-agent", async () => {
    const side = (id: string, parentUuid: string | null, fields: object) => ({
      uuid: id,
      parentUuid,
      isSidechain: true,
      ...fields,
    });
    const parent = main().spawns(
      { id: "t1", prompt: "One", tool: "Task" },
      { id: "t2", prompt: "Two", tool: "Task" },
    );
    const last = parent.lastId;
    parent.user("One", side("s1", null, {})).user("Two", side("s2", null, {}));
    const answer = (text: string) => ({
      message: {
        id: text,
        role: "assistant",
        model: "m",
        content: [{ type: "text", text }],
        stop_reason: "end_turn",
      },
    });
    parent
      .row("assistant", side("s3", "s1", answer("First")))
      .row("assistant", side("s4", "s2", answer("Second")));
    parent.row("user", {
      parentUuid: last,
      message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "First" }] },
    });
    await lay(root, { [MAIN]: parent });
    assert.deepEqual(shapeOf(await family()), ["1 s1 t1 completed certain", "1 s2 t2 completed likely"]);
    const [found] = await discoverAll(claudeCode, root);
    const { entries, state } = await readAll(claudeCode, found as never);
    assert.deepEqual(
      entries.filter(({ inlineId }) => inlineId === "s1").map(({ body }) => body.text),
      ["One", "First"],
    );
    assert.ok(entries.filter(({ inlineId }) => inlineId !== null).every(({ isSubagent }) => isSubagent));
    assert.equal(state.facts.messageCount, 2);
  });

  it("a host's own folder in between, a link in place of a folder, and a session in two projects", async () => {
    await lay(root, { [`host-1/${MAIN}`]: main().says("Hi"), [`other/${S}.jsonl`]: main().says("Hi") });
    await lay(join(root, "elsewhere"), { [`moved/${T}.jsonl`]: main(T).says("Hi") });
    await symlink(join(root, "elsewhere/projects/moved"), join(root, "projects/moved"));
    const found = await discoverAll(claudeCode, root);
    assert.deepEqual(
      found.map(({ id }) => id),
      [S, S, T],
    );
    assert.equal(new Set(found.map(({ key }) => key)).size, 3);
  });

  it("workflows: sub-agents of a run belong to its call, and its journal says how they ended", async () => {
    const run = `-w-app/${S}/subagents/workflows/wf_1`;
    const journal = [
      { type: "started", agentId: A },
      { type: "result", agentId: A, result: "ok" },
      { type: "started", agentId: B },
    ];
    const call = { id: "t1", prompt: "", tool: "Workflow", input: { name: "audit" } };
    await lay(root, {
      [MAIN]: main()
        .spawns(call)
        .result("t1", "Workflow launched\nTask ID: w9")
        .says("Launched")
        .endsTurn({ pendingWorkflowCount: 1 }),
      [`${run}/journal.jsonl`]: journal.map((line) => JSON.stringify(line)).join("\n"),
      [`${run}/agent-${A}.jsonl`]: child(A, "One"),
      [`${run}/agent-${A}.meta.json`]: { agentType: "workflow" },
      [`${run}/agent-${B}.jsonl`]: new Transcript(S, { agentId: B }).user("Two").says("half", null),
      [`-w-app/${S}/workflows/wf_1.json`]: { taskId: "w9", workflowName: "audit", status: "failed" },
    });
    const found = await family();
    assert.deepEqual(shapeOf(found).toSorted(), [
      `1 ${A} t1 completed certain`,
      `1 ${B} t1 interrupted likely`,
    ]);
    assert.equal(found.byCall.get("t1")?.length, 2);
  });

  it("sub-agents whose session is gone are still a family", async () => {
    await lay(root, { [at(A)]: child(A, "One"), [at(B)]: child(B, "Two") });
    const found = (await families(root)).get("");
    assert.deepEqual(
      found?.agents.map(({ status }) => status.state),
      ["completed", "completed"],
    );
  });

  it("a session resumed into a new file repeats its beginning, and the first copy is the one kept", async () => {
    const first = main().says("Hi").endsTurn();
    const second = new Transcript(T);
    second.rows.push(...first.rows);
    second.user("More", { timestamp: "2026-08-01T11:00:00.000Z" });
    await lay(root, { [MAIN]: first, [`-w-app/${T}.jsonl`]: second });
    const found = await discoverAll(claudeCode, root);
    const sessions = await Promise.all(
      found.map(async (one) => ({ found: one, state: (await readAll(claudeCode, one)).state })),
    );
    assert.deepEqual([...replaysOf(sessions)], [[`claude-code:${T}`, `claude-code:${S}`]]);
  });
});
