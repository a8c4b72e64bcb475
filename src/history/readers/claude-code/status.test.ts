import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { discoverAll, readAll } from "../../reader.spec.ts";
import { claudeCode } from "./index.ts";
import {
  S,
  A,
  B,
  C,
  MAIN,
  at,
  main,
  child,
  sidecar,
  launched,
  agent,
  ALIVE,
  DEAD,
  enqueued,
  families,
  lay,
  notice,
  shapeOf,
  Transcript,
} from "./testing/transcript.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "kinfold-claude-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const done = (agentId: string) => ({
  toolUseResult: { status: "completed", agentId, totalDurationMs: 55, totalTokens: 48 },
});
const only = async (options: Parameters<typeof families>[1] = {}) => {
  const found = (await families(root, options)).get(S);
  assert.ok(found);
  return found;
};

describe("the five cases of the source design", () => {
  it("completed: the parent has the result, and the file records the end", async () => {
    await lay(root, {
      [MAIN]: main()
        .spawns({ id: "t1", prompt: "Look at Y" })
        .result("t1", "Y is fine", done(A))
        .says("Done.")
        .endsTurn(),
      [at(A)]: child(A).says("Y is fine"),
      [at(A, "meta.json")]: sidecar("t1"),
    });
    const family = await only();
    assert.deepEqual(shapeOf(family), [`1 ${A} t1 completed certain`]);
    const { status } = agent(family, A);
    assert.deepEqual([status.durationMs, status.tokens, status.messageCount], [55, 48, 2]);
  });

  it("failed without a result in the parent: its file ends with a failed call, and its error is shown", async () => {
    const failing = child(A).answer([{ type: "tool_use", id: "b1", name: "Bash", input: { command: "ls" } }]);
    failing.result("b1", "Tool permission stream closed before response received", { isError: true });
    await lay(root, {
      [MAIN]: main().spawns({ id: "t1", prompt: "Look at Y" }),
      [at(A)]: failing,
      [at(A, "meta.json")]: sidecar("t1"),
    });
    const family = await only({ live: DEAD });
    assert.deepEqual(shapeOf(family), [`1 ${A} t1 failed likely`]);
    assert.match(agent(family, A).status.error ?? "", /permission stream closed/);
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [`1 ${A} t1 running likely`]);
  });

  it("a sub-agent that ends with a failed call after its process died is interrupted, not failed", async () => {
    const killed = child(A).answer([{ type: "tool_use", id: "b1", name: "Bash", input: { command: "ls" } }]);
    killed.result("b1", "Exit code 2: no such file", { isError: true });
    await lay(root, {
      [MAIN]: main().spawns({ id: "t1", prompt: "Look at Y" }),
      [at(A)]: killed,
      [at(A, "meta.json")]: sidecar("t1"),
    });
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 interrupted certain`]);
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [`1 ${A} t1 running likely`]);
  });

  it("progress rows in the parent's file name a sub-agent without a file and show that it works", async () => {
    const progress = { type: "agent_progress", agentId: A, prompt: "Look at Y", message: {} };
    const parent = main()
      .spawns({ id: "t1", prompt: "Look at Y" })
      .row("progress", { data: progress, toolUseID: "agent_msg_1", parentToolUseID: "t1" });
    await lay(root, { [MAIN]: parent });
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [`1 ${A} t1 running likely`]);
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 interrupted certain`]);
    await lay(root, { [MAIN]: parent, [at(A)]: child(A).says("Done.") });
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 completed likely`]);
  });

  it("a helper that compacts the session is not a sub-agent", async () => {
    const id = "acompact-0123456789abcdef";
    await lay(root, { [MAIN]: main().says("Done.").endsTurn(), [at(id)]: child(id).says("<summary>", null) });
    const facts = await Promise.all(
      (await discoverAll(claudeCode, root)).map(async (one) => (await readAll(claudeCode, one)).state.facts),
    );
    assert.deepEqual(
      facts.map((each) => [each.id, each.internal]),
      [
        [S, false],
        [id, true],
      ],
    );
    assert.deepEqual(shapeOf(await only({ live: DEAD })), []);
  });

  it("running: the file has no end, there is no result yet, and its process is alive or the file was seen to grow", async () => {
    await lay(root, {
      [MAIN]: main().spawns({ id: "t1", prompt: "Look at Y" }),
      [at(A)]: child(A).answer([{ type: "tool_use", id: "b1", name: "Bash", input: {} }]),
      [at(A, "meta.json")]: sidecar("t1"),
    });
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [`1 ${A} t1 running likely`]);
    const seenWorking = new Map([[`claude-code:${S}/${A}`, "its file grew while it was watched"]]);
    assert.deepEqual(shapeOf(await only({ seenWorking })), [`1 ${A} t1 running likely`]);
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 interrupted certain`]);
    assert.deepEqual(
      shapeOf(await only()),
      [`1 ${A} t1 interrupted certain`],
      "2.1.223 registers its processes",
    );
  });

  it("orphaned: neither a file nor a result, and the process is gone", async () => {
    await lay(root, { [MAIN]: main().spawns({ id: "t1", prompt: "Look at Y" }) });
    assert.deepEqual(shapeOf(await only({ live: DEAD })), ["1 t1 t1 orphaned certain"]);
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), ["1 t1 t1 pending likely"]);
    await lay(root, {
      [MAIN]: main().spawns({ id: "t1", prompt: "Look at Y" }).user("Never mind").says("Fine."),
    });
    assert.deepEqual(
      shapeOf(await only({ live: ALIVE })),
      ["1 t1 t1 orphaned certain"],
      "never pending for ever",
    );
  });

  it("several sub-agents of one answer each have their own state", async () => {
    const calls = ["t1", "t2", "t3"].map((id) => ({ id, prompt: `Look at ${id}` }));
    await lay(root, {
      [MAIN]: main()
        .spawns(...calls)
        .result("t2", "No", { isError: true, toolUseResult: "Error: No" }),
      [at(A)]: child(A, "Look at t1").says("Fine"),
      [at(A, "meta.json")]: sidecar("t1"),
      [at(B)]: child(B, "Look at t2").says("half", null),
      [at(B, "meta.json")]: sidecar("t2"),
      [at(C)]: child(C, "Look at t3"),
      [at(C, "meta.json")]: sidecar("t3"),
    });
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [
      `1 ${A} t1 completed likely`,
      `1 ${B} t2 failed certain`,
      `1 ${C} t3 pending likely`,
    ]);
    assert.equal((await only({ live: { ...ALIVE, doing: null } })).judgement?.state, "running");
  });
});

describe("a sub-agent its parent no longer waits for", () => {
  const idle = { ...ALIVE, doing: "idle" as const };
  const stop = [{ type: "text", text: "[Request interrupted by user]" }];
  const spawning = (): Transcript => main().spawns({ id: "t1", prompt: "Look at Y" });
  const files = (parent: Transcript, own: Transcript) => ({
    [MAIN]: parent,
    [at(A)]: own,
    [at(A, "meta.json")]: sidecar("t1"),
  });

  it("is interrupted with its parent, or orphaned if it has no file, although the process is alive", async () => {
    for (const live of [idle, { ...ALIVE, doing: null }]) {
      for (const parent of [spawning().user(stop), spawning().endsTurn()]) {
        await lay(root, files(parent, child(A).says("half", null)));
        assert.deepEqual(shapeOf(await only({ live })), [`1 ${A} t1 interrupted certain`]);
        assert.notEqual((await only({ live })).judgement?.state, "running");
        await rm(join(root, "projects"), { recursive: true });
        await lay(root, { [MAIN]: parent });
        assert.deepEqual(shapeOf(await only({ live })), ["1 t1 t1 orphaned certain"]);
      }
    }
  });

  it("is interrupted if its failed result is in the same row as the interrupt", async () => {
    const refused = "The user doesn't want to proceed with this tool use.";
    const block = { type: "tool_result", tool_use_id: "t1", is_error: true, content: refused };
    const both = [block, { type: "text", text: "[Request interrupted by user for tool use]" }];
    const parent = spawning().user(both, { toolUseResult: `Error: ${refused}` });
    await lay(root, files(parent, child(A).says("half", null)));
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 interrupted certain`]);
  });

  it("is not running while its process says that it is idle", async () => {
    await lay(root, files(spawning(), child(A).says("half", null)));
    assert.deepEqual(shapeOf(await only({ live: idle })), [`1 ${A} t1 interrupted certain`]);
  });

  it("still runs below a background sub-agent, which an idle session does not end", async () => {
    const above = main()
      .spawns({ id: "t1", prompt: "Look at Y", input: { run_in_background: true } })
      .result("t1", "Async agent launched", launched(A))
      .says("Launched.")
      .endsTurn({ pendingBackgroundAgentCount: 1 });
    const below = {
      [at(B)]: child(B, "Look at Z").says("half", null),
      [at(B, "meta.json")]: sidecar("t2"),
    };
    await lay(root, { ...files(above, child(A).spawns({ id: "t2", prompt: "Look at Z" })), ...below });
    assert.deepEqual(shapeOf(await only({ live: idle })), [
      `1 ${A} t1 running likely`,
      `2 ${B} t2 running likely`,
    ]);
    above.beside(enqueued(above, notice(A, "t1", "killed")));
    await lay(root, { [MAIN]: above });
    assert.deepEqual(
      shapeOf(await only({ live: idle })),
      [`1 ${A} t1 cancelled certain`, `2 ${B} t2 interrupted certain`],
      "who was stopped waits for nothing",
    );
  });
});

describe("a sub-agent's end that its own file does not record", () => {
  const idle = { ...ALIVE, doing: "idle" as const };

  it("is in its sidecar: finished means over, unless it was prompted again", async () => {
    const files = (own: Transcript) => ({
      [MAIN]: main().spawns({ id: "t1", prompt: "Look at Y" }),
      [at(A)]: own,
      [at(A, "meta.json")]: sidecar("t1", { requestShape: "foreground", finished: true }),
    });
    for (const live of [ALIVE, DEAD]) {
      await lay(root, files(child(A).says("half", null)));
      assert.deepEqual(shapeOf(await only({ live })), [`1 ${A} t1 completed likely`]);
    }
    const seenWorking = new Map([[`claude-code:${S}/${A}`, "its file grew while it was watched"]]);
    assert.deepEqual(shapeOf(await only({ seenWorking })), [`1 ${A} t1 completed likely`]);
    await lay(root, files(child(A).says("Fine").user("And now Z").says("half", null)));
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [`1 ${A} t1 running likely`]);
  });

  const run = `-w-app/${S}/subagents/workflows/wf_1`;
  const workflow = (): Transcript =>
    main()
      .spawns({ id: "t1", prompt: "", tool: "Workflow", input: { name: "audit" } })
      .result("t1", "Workflow launched\nTask ID: w9\nRun ID: wf_1")
      .says("Launched")
      .endsTurn({ pendingWorkflowCount: 1 });
  const agents = {
    [`${run}/agent-${A}.jsonl`]: child(A, "One").says("Fine"),
    [`${run}/agent-${B}.jsonl`]: child(B, "Two").says("half", null),
  };

  it("is in its workflow's record: sub-agents that had not ended were stopped with the workflow", async () => {
    for (const [status, state] of [
      ["killed", "cancelled certain"],
      ["failed", "interrupted likely"],
      ["completed", "interrupted likely"],
      ["running", "running likely"],
    ]) {
      const snapshot = { taskId: "w9", workflowName: "audit", status };
      await lay(root, { [MAIN]: workflow(), ...agents, [`-w-app/${S}/workflows/wf_1.json`]: snapshot });
      assert.deepEqual(shapeOf(await only({ live: idle })).toSorted(), [
        `1 ${A} t1 completed likely`,
        `1 ${B} t1 ${state}`,
      ]);
    }
  });

  it("is in its workflow's notification, which is about all its sub-agents", async () => {
    for (const [status, state] of [
      ["killed", "cancelled certain"],
      ["failed", "interrupted likely"],
    ] as const) {
      const parent = workflow();
      await lay(root, { [MAIN]: parent.beside(enqueued(parent, notice("w9", "t1", status))), ...agents });
      const family = await only({ live: idle });
      assert.deepEqual(shapeOf(family).toSorted(), [`1 ${A} t1 completed likely`, `1 ${B} t1 ${state}`]);
      assert.equal(family.judgement?.state, "completed");
    }
  });
});

describe("a session itself", () => {
  const judged = async (transcript: Transcript, options: Parameters<typeof families>[1] = { live: DEAD }) => {
    await lay(root, { [MAIN]: transcript });
    const { judgement } = await only(options);
    return [judgement?.state, judgement?.confidence];
  };

  it("ends as its last turn did", async () => {
    assert.deepEqual(await judged(main().says("Done.").endsTurn()), ["completed", "certain"]);
    assert.deepEqual(await judged(main().says("Done.")), ["completed", "likely"]);
    assert.deepEqual(await judged(main()), ["interrupted", "certain"]);
    assert.deepEqual(await judged(main().answer([{ type: "tool_use", id: "x", name: "Bash", input: {} }])), [
      "interrupted",
      "certain",
    ]);
    assert.deepEqual(await judged(main().user([{ type: "text", text: "[Request interrupted by user]" }])), [
      "interrupted",
      "certain",
    ]);
    const error = { type: "text", text: "API Error: 500" };
    assert.deepEqual(await judged(main().answer([error], "stop_sequence", { isApiErrorMessage: true })), [
      "failed",
      "likely",
    ]);
    assert.deepEqual(await judged(main().says("cut", "max_tokens")), ["failed", "likely"]);
  });

  it("has the state that its process reports, and waits when the process waits", async () => {
    assert.deepEqual(await judged(main().says("Done."), { live: ALIVE }), ["running", "certain"]);
    assert.deepEqual(await judged(main(), { live: { ...ALIVE, doing: "waiting" } }), ["waiting", "certain"]);
    assert.deepEqual(await judged(main().says("Done."), { live: { ...ALIVE, doing: "idle" } }), [
      "completed",
      "certain",
    ]);
    assert.deepEqual(await judged(main(), { live: { ...ALIVE, doing: null } }), ["running", "likely"]);
  });

  it("is not reopened by a person's command, nor prompted by a person's interrupt", async () => {
    const origin = { kind: "human" };
    const done = (): Transcript => new Transcript(S).user("Do X", { origin }).says("Done.").endsTurn();
    const command =
      "<command-name>/cost</command-name><command-message>cost</command-message><command-args></command-args>";
    const said = "<local-command-stdout>$1</local-command-stdout>";
    assert.deepEqual(await judged(done().user(command, { origin }).user(said)), ["completed", "certain"]);
    const local = { subtype: "local_command", content: said };
    assert.deepEqual(await judged(done().user(command, { origin }).row("system", local)), [
      "completed",
      "certain",
    ]);
    assert.deepEqual(await judged(done().user(`${command} what is this?`, { origin }).says("A command.")), [
      "completed",
      "likely",
    ]);
    await judged(
      done()
        .user("Y")
        .user([{ type: "text", text: "[Request interrupted by user]" }], { origin }),
    );
    const { judgement } = await only({ live: DEAD });
    assert.match(judgement?.reason ?? "", /says that it was interrupted/);
  });

  it("has failed if Claude Code itself wrote its last answer", async () => {
    const answer = {
      id: "m",
      role: "assistant",
      model: "<synthetic>",
      content: [{ type: "text", text: "API Error: 500" }],
      stop_reason: "stop_sequence",
    };
    assert.deepEqual(await judged(main().row("assistant", { message: answer })), ["failed", "likely"]);
  });

  it("of a version without a registry gets a guess if there is no other evidence", async () => {
    const old = new Transcript(S, { fields: { version: "2.0.14" } }).user("Do X");
    assert.deepEqual(await judged(old, {}), ["interrupted", "guess"]);
  });

  it("of a version that writes no stop reason is completed by an answer with text, and certainly so by a Stop hook", async () => {
    const written = (version: string) => new Transcript(S, { fields: { version } }).user("Do X");
    const hooks = { subtype: "stop_hook_summary", hookCount: 1, hookInfos: [], preventedContinuation: false };
    for (const version of ["2.0.14", "2.1.2", "2.1.49"]) {
      assert.deepEqual(await judged(written(version).says("Done.", null)), ["completed", "likely"], version);
      const hooked = written(version).says("Done.", null).row("system", hooks);
      assert.deepEqual(await judged(hooked), ["completed", "certain"], version);
      const busy = { live: { ...ALIVE, doing: null } };
      assert.deepEqual(await judged(written(version).says("Half.", null), busy), ["running", "likely"]);
    }
    const open = written("2.1.2").answer(
      [
        { type: "text", text: "I look." },
        { type: "tool_use", id: "b1", name: "Bash", input: {} },
      ],
      null,
    );
    assert.deepEqual(await judged(open), ["interrupted", "certain"], "an open call");
    const thinking = written("2.1.2").answer([{ type: "thinking", thinking: "Hm" }], null);
    assert.deepEqual(await judged(thinking), ["interrupted", "certain"], "no text");
    for (const version of ["2.1.50", "2.2.0", "3.0.1"]) {
      assert.deepEqual(
        await judged(written(version).says("Half", null)),
        ["interrupted", "certain"],
        version,
      );
      const hooked = written(version).says("Done.", null).row("system", hooks);
      assert.deepEqual(await judged(hooked), ["completed", "certain"], version);
    }
  });

  it("is not reopened by a command that needs no answer, nor by being opened again", async () => {
    const left = main()
      .says("Done.")
      .endsTurn()
      .user("<command-name>/exit</command-name>")
      .user("<local-command-stdout>Bye!</local-command-stdout>");
    assert.deepEqual(await judged(left), ["completed", "certain"]);
    const reopened = main()
      .says("Done.")
      .endsTurn()
      .user("Continue from where you left off.", { isMeta: true });
    const silence = {
      model: "<synthetic>",
      content: [{ type: "text", text: "No response requested." }],
      stop_reason: "stop_sequence",
    };
    assert.deepEqual(await judged(reopened.row("assistant", { message: silence })), ["completed", "certain"]);
  });
});
