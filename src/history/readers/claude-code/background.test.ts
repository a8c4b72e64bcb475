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
  type Transcript,
} from "./testing/transcript.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "kinfold-claude-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const only = async (options: Parameters<typeof families>[1] = {}) => {
  const found = (await families(root, options)).get(S);
  assert.ok(found);
  return found;
};

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

  it("an unfinished answer is running or interrupted, and completed once that is reported", async () => {
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

  it("work that stopped before the current process started is not that process's work", async () => {
    await lay(root, files(background(), child(A).says("half", null)));
    const later = { ...ALIVE, doing: null, startedAt: Date.UTC(2026, 7, 2) };
    assert.deepEqual(shapeOf(await only({ live: later })), [`1 ${A} t1 interrupted certain`]);
  });

  it("a sub-agent that was woken by the end of its own sub-agent is open again", async () => {
    const parent = background().endsTurn();
    parent.beside(enqueued(parent, notice(A, "t1", "completed")));
    const woken = child(A).says("Waiting");
    for (let seconds = 0; seconds < 60; seconds += 1) woken.time();
    woken.user(notice(B, "t2", "completed"), { origin: { kind: "task-notification" } });
    woken.answer([{ type: "tool_use", id: "b1", name: "Bash", input: {} }]);
    await lay(root, files(parent, woken));
    assert.deepEqual(shapeOf(await only({ live: ALIVE })), [`1 ${A} t1 running likely`]);
  });

  it("neither an event of a running sub-agent nor the end of a shell ends it", async () => {
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

  it("its answer may quote a notification, even if only a queue row has the answer", async () => {
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

  it("Claude Code's words after a notice, and several notices in one row, are not attributed to a person", async () => {
    const tail = "\nRead the output file to retrieve the result: /tmp/claude/tasks/x.output";
    const two = `${notice(A, "t1", "completed")}${tail}\n${notice(B, "t2", "failed")}${tail}`;
    const other = `${notice(A, "t1", "completed")}\nThe agent's whole output is in its file.`;
    for (const text of [`${notice(A, "t1", "completed")}${tail}`, two, other]) {
      await lay(root, files(background().user(text).says("I see."), child(A).says("half", null)));
      assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 completed certain`], text);
      const session = (await discoverAll(claudeCode, root)).find(({ id }) => id === S);
      const { entries, state } = await readAll(claudeCode, session!);
      assert.deepEqual(
        entries.filter(({ author }) => author === "person").map(({ body }) => body.text),
        ["Do X"],
      );
      assert.equal(state.facts.told.length, text === two ? 2 : 1);
    }
    const parent = background().endsTurn();
    const queued = parent.beside(enqueued(parent, `${notice(A, "t1", "completed")}${tail}`));
    await lay(root, files(queued, child(A).says("half", null)));
    assert.deepEqual(shapeOf(await only({ live: DEAD })), [`1 ${A} t1 completed certain`]);
  });

  it("TaskOutput and TaskStop report a sub-agent's state", async () => {
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
