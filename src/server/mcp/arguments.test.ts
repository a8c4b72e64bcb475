import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Refusal, TOOL_WORDS } from "../../contract/index.ts";
import { readArguments } from "./arguments.ts";
import { TOOL_NAMES, operationOf, parametersOf } from "./arguments.ts";

function refused(run: () => unknown, message: RegExp): void {
  assert.throws(
    run,
    (error) => error instanceof Refusal && error.code === "invalid_input" && message.test(error.message),
  );
}

describe("arguments", () => {
  test("keys are matched ignoring case and underscores", () => {
    assert.deepEqual(readArguments("waitChildren", { IDS: ["a"], timeout_ms: 5, Cursor: "w1" }), {
      ids: ["a"],
      timeoutMs: 5,
      cursor: "w1",
    });
    for (const key of ["sessionId", "session_id", "SESSION_ID", "sessionKey", "id"]) {
      assert.deepEqual(readArguments("cancel", { [key]: "x" }), { id: "x" });
    }
  });

  test("every advertised parameter is accepted", () => {
    assert.equal(TOOL_NAMES.length, 15);
    for (const tool of TOOL_WORDS) {
      const operation = operationOf(tool.name);
      assert.ok(operation);
      const names = Object.keys(tool.parameters);
      assert.deepEqual(names, [...parametersOf(operation).keys()]);
      for (const name of names) assert.doesNotThrow(() => readArguments(operation, { [name]: "x" }));
    }
  });

  test("the names of the source designs are understood", () => {
    const input = readArguments("spawn", {
      prompt: "x",
      agenticTool: "codex",
      session_type: "tester",
      enableCallback: true,
      includeLastMessage: false,
      includeOriginalPrompt: true,
      callbackTemplate: "{{status}}",
      model: { provider: "openai", id: "gpt-5.5" },
    });
    assert.deepEqual(input, {
      prompt: "x",
      agent: "codex",
      profile: "tester",
      model: "openai/gpt-5.5",
      callback: {
        enabled: true,
        includeLastMessage: false,
        includeOriginalPrompt: true,
        template: "{{status}}",
      },
    });
    assert.deepEqual(readArguments("spawn", { callback: false, includeLastMessage: true }).callback, {
      enabled: false,
      includeLastMessage: true,
    });
    assert.deepEqual(readArguments("spawn", { callback: { include_last_message: true } }).callback, {
      includeLastMessage: true,
    });
  });

  test("one session_id is the source's form, several ids are not", () => {
    assert.deepEqual(readArguments("waitChildren", { session_id: "a" }), { ids: ["a"], sourceForm: true });
    assert.deepEqual(readArguments("waitChildren", { sessionId: "a", timeoutMs: "0" }), {
      ids: ["a"],
      sourceForm: true,
      timeoutMs: 0,
    });
    assert.deepEqual(readArguments("waitChildren", { ids: "a", until: "2" }), { ids: ["a"], until: 2 });
    assert.deepEqual(readArguments("waitChildren", { ids: ["a"], until: 2 }), { ids: ["a"], until: 2 });
    refused(() => readArguments("waitChildren", { ids: ["a"], session_id: "b" }), /not both/);
  });

  test("what a spawn accepts beside what is advertised", () => {
    const given = {
      prompt: "x",
      instructions: "i",
      tools: '["Read"]',
      runnerId: "build-1",
      limits: { USD: 2, Minutes: 30 },
      key: "k",
      on_parent_end: "detach",
    };
    assert.deepEqual(readArguments("spawn", given), {
      prompt: "x",
      instructions: "i",
      tools: ["Read"],
      node: "build-1",
      limits: { usd: 2, minutes: 30 },
      key: "k",
      onParentEnd: "detach",
    });
  });

  test("one task, chain and parallel are all tasks with a mode", () => {
    const tasks = [{ task: "a" }, { task: "b", profile: "tester" }];
    assert.deepEqual(readArguments("subagent", { tasks }), { tasks });
    assert.deepEqual(readArguments("subagent", { task: "a", profile: "tester" }), {
      tasks: [{ task: "a", profile: "tester" }],
    });
    assert.deepEqual(readArguments("subagent", { prompt: "a", agent: "codex" }), {
      tasks: [{ task: "a", agent: "codex" }],
    });
    assert.deepEqual(readArguments("subagent", { chain: ["a", { prompt: "b", session_type: "tester" }] }), {
      tasks,
      mode: "chain",
    });
    assert.deepEqual(readArguments("subagent", { parallel: JSON.stringify(tasks) }), {
      tasks,
      mode: "parallel",
    });
    refused(() => readArguments("subagent", { task: "a", tasks }), /Give the tasks once/);
  });

  test("one question is a list of one, in the words of every source design", () => {
    assert.deepEqual(readArguments("ask", { question: "Which?", options: ["a", "b"], timeout_ms: "5000" }), {
      questions: [{ question: "Which?", options: ["a", "b"] }],
      timeoutMs: 5_000,
    });
    const questions = [{ text: "Which?", multiSelect: true }, { Question: "Order?", ranked: true }, "Why?"];
    assert.deepEqual(readArguments("ask", { questions }), {
      questions: [
        { question: "Which?", type: "checkbox" },
        { question: "Order?", type: "ranked" },
        { question: "Why?" },
      ],
    });
    refused(() => readArguments("ask", { question: "a", questions: ["b"] }), /question or questions/);
  });

  test("triggers, turns and sessions are named as their sources name them", () => {
    assert.deepEqual(readArguments("respond", { trigger_id: "t", answers: { q1: "a" } }), {
      id: "t",
      answers: { q1: "a" },
    });
    assert.deepEqual(readArguments("escalate", { id: "t", context: "c" }), { id: "t", context: "c" });
    assert.deepEqual(readArguments("inspect", { session_id: "s", taskId: "u" }), { id: "s", turn: "u" });
    assert.deepEqual(readArguments("search", { query: "q", sessionKey: "s", limit: "5" }), {
      query: "q",
      id: "s",
      limit: 5,
    });
    const fired = {
      session_id: "parent",
      type: "progress",
      payload: '{"done":1}',
      source: "ci",
      deliver_as: "followUp",
    };
    assert.deepEqual(readArguments("fire", fired), {
      id: "parent",
      type: "progress",
      payload: { done: 1 },
      source: "ci",
      deliverAs: "followUp",
    });
    assert.deepEqual(readArguments("planReview", { title: "t", steps: ["a", { Title: "b" }] }), {
      title: "t",
      steps: ["a", { title: "b" }],
    });
  });

  test("null means not given", () => {
    assert.deepEqual(readArguments("spawn", { prompt: "x", name: null, callback: null }), { prompt: "x" });
  });

  test("what the daemon decides cannot be passed in", () => {
    for (const key of ["capMs", "sourceForm", "one"]) {
      refused(() => readArguments("waitChildren", { [key]: true }), /is not a field here/);
    }
    refused(() => readArguments("spawn", { id: "another parent" }), /is not a field here/);
    for (const operation of ["ask", "planReview", "subagent"] as const) {
      refused(() => readArguments(operation, { capMs: 1 }), /is not a field here/);
    }
  });

  test("anything unknown is refused with the nearest key, and nothing may be said twice", () => {
    refused(
      () => readArguments("tell", { sessionId: "x", mesage: "y" }),
      /did you mean "message"\? Allowed: sessionId, message, deliverAs/,
    );
    refused(
      () => readArguments("family", { workspace: "clone" }),
      /"workspace" is not a field here\. Allowed: status\./,
    );
    refused(() => readArguments("cancel", { sessionId: "x", session_id: "y" }), /sets the same field/);
  });
});
