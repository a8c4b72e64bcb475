import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Refusal, TOOL_WORDS } from "../contract/index.ts";
import { readArguments } from "./mcp-arguments.ts";
import { TOOL_NAMES, operationOf, parametersOf } from "./mcp-tools.ts";

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

  test("null means not given", () => {
    assert.deepEqual(readArguments("spawn", { prompt: "x", name: null, callback: null }), { prompt: "x" });
  });

  test("what the daemon decides cannot be passed in", () => {
    for (const key of ["capMs", "sourceForm", "one"]) {
      refused(() => readArguments("waitChildren", { [key]: true }), /is not a field here/);
    }
    refused(() => readArguments("spawn", { id: "another parent" }), /is not a field here/);
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
    refused(() => readArguments("cancel", { sessionId: "x", session_id: "y" }), /says again/);
  });
});
