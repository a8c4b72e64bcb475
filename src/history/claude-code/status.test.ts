import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { discoverAll, readAll } from "../reader.spec.ts";
import { claudeCode } from "./index.ts";
import {
  agent,
  ALIVE,
  DEAD,
  enqueued,
  families,
  lay,
  notice,
  shapeOf,
  Transcript,
} from "./transcript.spec.ts";

const S = "11111111-1111-4111-8111-111111111111";
const A = "a0000000000000001";
const B = "a0000000000000002";
const C = "a0000000000000003";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "kinfold-claude-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const main = (): Transcript => new Transcript(S).user("Do X");
const child = (agentId: string, prompt = "Look at Y"): Transcript =>
  new Transcript(S, { agentId, from: 2 }).user(prompt);
const sidecar = (toolUseId: string, fields = {}) => ({
  agentType: "Explore",
  description: "looks",
  toolUseId,
  ...fields,
});
const at = (agentId: string, ending = "jsonl"): string => `-w-app/${S}/subagents/agent-${agentId}.${ending}`;
const MAIN = `-w-app/${S}.jsonl`;
const done = (agentId: string) => ({
  toolUseResult: { status: "completed", agentId, totalDurationMs: 55, totalTokens: 48 },
});
const launched = (agentId: string) => ({
  toolUseResult: { isAsync: true, status: "async_launched", agentId },
});
const only = async (options: Parameters<typeof families>[1] = {}) => {
  const found = (await families(root, options)).get(S);
  assert.ok(found);
  return found;
};

describe("the five cases of the source design", () => {
  it("completed: the parent has the result and the file its end", async () => {
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

  it("running: the file goes on, there is no result yet, and its process lives or it was seen to grow", async () => {
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

  it("several in parallel, in one answer, each with its own state", async () => {
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

  it("is interrupted with its parent, and orphaned where it has no file, though the process lives", async () => {
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

  it("is interrupted where its failed result stands beside the interrupt", async () => {
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

  it("still runs below one in the background, which an idle session does not end", async () => {
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

describe("the end of a sub-agent that does not stand in its file", () => {
  const idle = { ...ALIVE, doing: "idle" as const };

  it("stands in its sidecar: finished is over, unless it was prompted again", async () => {
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

  it("stands in its workflow's record: whoever had not come to an end was stopped with it", async () => {
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

  it("stands in its workflow's notification, which is about all its sub-agents", async () => {
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

describe("background sub-agents", () => {
  const background = (): Transcript =>
    main()
      .spawns({ id: "t1", prompt: "Look at Y", input: { run_in_background: true } })
      .result("t1", "Async agent launched", launched(A))
      .says("Launched.");
  const files = (parent: Transcript, own: Transcript) => ({
    [MAIN]: parent,
    [at(A)]: own,
    [at(A, "meta.json")]: sidecar("t1"),
  });

  for (const [status, state] of Object.entries({
    completed: "completed",
    failed: "failed",
    killed: "cancelled",
  })) {
    it(`told as ${status} it is ${state}, through any of the three carriers`, async () => {
      const text = notice(A, "t1", status);
      const carriers: ((parent: Transcript) => Transcript)[] = [
        (parent) => parent.user(text, { origin: { kind: "task-notification" } }).says("I see."),
        (parent) => parent.beside(enqueued(parent, text)),
        (parent) =>
          parent.row("attachment", { attachment: { type: "queued_command", prompt: text } }).says("I see."),
      ];
      for (const carry of carriers) {
        await lay(
          root,
          files(
            carry(background().endsTurn({ pendingBackgroundAgentCount: 1 })),
            child(A).says("half", null),
          ),
        );
        assert.deepEqual(shapeOf(await only({ live: { ...ALIVE, doing: "idle" } })), [
          `1 ${A} t1 ${state} certain`,
        ]);
        assert.equal((await only({ live: { ...ALIVE, doing: "idle" } })).judgement?.state, "completed");
      }
    });
  }

  it("a parent whose turn is over is not done while one still runs", async () => {
    await lay(
      root,
      files(background().endsTurn({ pendingBackgroundAgentCount: 1 }), child(A).says("half", null)),
    );
    const family = await only({ live: { ...ALIVE, doing: "idle" } });
    assert.equal(family.judgement?.state, "running");
    assert.match(family.judgement?.reason ?? "", /still runs/);
    const dead = await only({ live: DEAD });
    assert.deepEqual([dead.judgement?.state, agent(dead, A).status.state], ["completed", "interrupted"]);
  });

  it("a prompt that merely mentions a notification is a prompt", async () => {
    const asked = background()
      .endsTurn()
      .user(`What does ${notice(A, "t1", "failed")} mean?`)
      .says("That it failed.");
    await lay(root, files(asked, child(A).says("Fine")));
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 completed likely`]);
  });

  it("of repeated notifications the last counts", async () => {
    const parent = background().endsTurn();
    parent
      .beside(enqueued(parent, notice(A, "t1", "failed")))
      .beside(enqueued(parent, notice(A, "t1", "completed")));
    await lay(root, files(parent, child(A).says("Fine")));
    assert.deepEqual(shapeOf(await only()), [`1 ${A} t1 completed certain`]);
  });

  it("one that was prompted again is open again: older evidence is about its earlier work", async () => {
    const parent = background().endsTurn();
    parent.beside(enqueued(parent, notice(A, "t1", "completed")));
    const resumed = child(A).says("Fine");
    for (let seconds = 0; seconds < 60; seconds += 1) resumed.time();
    resumed.user("And now Z").answer([{ type: "tool_use", id: "b1", name: "Bash", input: {} }]);
    await lay(root, files(parent, resumed));
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [`1 ${A} t1 running likely`]);
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 interrupted certain`]);
  });

  it("an answer cut off in the middle is running or interrupted, and completed once that is told", async () => {
    await lay(root, files(background(), child(A).says("half", null)));
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [`1 ${A} t1 running likely`]);
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 interrupted certain`]);
    const parent = background();
    await lay(
      root,
      files(parent.beside(enqueued(parent, notice(A, "t1", "completed"))), child(A).says("half", null)),
    );
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 completed certain`]);
  });

  it("what stopped before the process that lives now began is not its work", async () => {
    await lay(root, files(background(), child(A).says("half", null)));
    const later = { ...ALIVE, doing: null, startedAt: Date.UTC(2026, 7, 2) };
    assert.deepEqual(shapeOf(await only({ live: later })), [`1 ${A} t1 interrupted certain`]);
  });

  it("one that its own sub-agent's end woke is open again", async () => {
    const parent = background().endsTurn();
    parent.beside(enqueued(parent, notice(A, "t1", "completed")));
    const woken = child(A).says("Waiting");
    for (let seconds = 0; seconds < 60; seconds += 1) woken.time();
    woken.user(notice(B, "t2", "completed"), { origin: { kind: "task-notification" } });
    woken.answer([{ type: "tool_use", id: "b1", name: "Bash", input: {} }]);
    await lay(root, files(parent, woken));
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [`1 ${A} t1 running likely`]);
  });

  it("an event of one that goes on does not end it, nor does a shell's end", async () => {
    const element = (id: string, rest: string) =>
      `<task-notification>\n<task-id>${id}</task-id>\n${rest}\n</task-notification>`;
    const live = { ...ALIVE, doing: "idle" as const };
    for (const text of [
      element(A, "<tool-use-id>t1</tool-use-id>\n<event>half way</event>"),
      element("bash_1", "<tool-use-id>t9</tool-use-id>\n<status>completed</status>"),
    ]) {
      const parent = background().endsTurn({ pendingBackgroundAgentCount: 1 });
      parent.beside(enqueued(parent, text));
      await lay(root, files(parent, child(A).says("half", null)));
      assert.deepEqual(shapeOf(await only({ live })), [`1 ${A} t1 running likely`]);
      const family = await only({ live });
      assert.equal(family.judgement?.state, "running");
      const [session] = await Promise.all(
        (await discoverAll(claudeCode, root))
          .filter(({ id }) => id === S)
          .map((one) => readAll(claudeCode, one)),
      );
      assert.equal(session?.state.facts.backgroundCount, 1, "what the agent counts is still there");
    }
  });

  it("what it answered may quote a notification, also where only the queue has it", async () => {
    for (const quoted of [
      "the text </task-notification> stands there",
      "the text <task-notification>x</task-notification> stands there",
      `the text ${notice(B, "t2", "failed")} stands there`,
    ]) {
      const parent = background().endsTurn();
      const text = notice(A, "t1", "completed").replace("It is done", quoted);
      await lay(root, files(parent.beside(enqueued(parent, text)), child(A).says("half", null)));
      assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 completed certain`], quoted);
    }
    const parent = background().endsTurn();
    const two = `${notice(A, "t1", "completed")} and ${notice(A, "t1", "failed")}`;
    await lay(root, files(parent.beside(enqueued(parent, two)), child(A).says("half", null)));
    assert.deepEqual(
      shapeOf(await only({ live: DEAD })),
      [`1 ${A} t1 interrupted certain`],
      "two of them with words between are a prompt",
    );
  });

  it("TaskOutput and TaskStop say how one stands", async () => {
    const output = {
      toolUseResult: {
        retrieval_status: "success",
        task: { task_id: A, task_type: "local_agent", status: "failed" },
      },
    };
    const stop = { toolUseResult: { message: "Stopped", task_id: A, task_type: "local_agent" } };
    for (const [fields, state] of [
      [output, "failed"],
      [stop, "cancelled"],
    ] as const) {
      const parent = background().answer([
        { type: "tool_use", id: "o1", name: "TaskOutput", input: { task_id: A } },
      ]);
      await lay(root, files(parent.result("o1", "…", fields), child(A).says("half", null)));
      assert.deepEqual(shapeOf(await only()), [`1 ${A} t1 ${state} certain`]);
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

  it("is what its process says it is, and asks when that waits", async () => {
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

  it("failed where its last answer is the program's own and no model's", async () => {
    const answer = {
      id: "m",
      role: "assistant",
      model: "<synthetic>",
      content: [{ type: "text", text: "API Error: 500" }],
      stop_reason: "stop_sequence",
    };
    assert.deepEqual(await judged(main().row("assistant", { message: answer })), ["failed", "likely"]);
  });

  it("of a version without a registry is a guess where nothing else tells", async () => {
    const old = new Transcript(S, { fields: { version: "2.0.14" } }).user("Do X").says("half", null);
    assert.deepEqual(await judged(old, {}), ["interrupted", "guess"]);
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
