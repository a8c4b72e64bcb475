import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fillInValue, readPrompt, replyValue } from "./script.ts";

const said = (text: string): string | null => {
  const [step] = readPrompt(text);
  return step?.word === "say" ? step.text : null;
};

describe("a prompt to sim", () => {
  it("is echoed, without its delivery mark", () => {
    assert.equal(said("hello\n<!-- message:01 -->"), "sim: hello");
    assert.equal(said("<!-- message:01 -->\nhello\nworld"), "sim: hello\nworld");
  });

  it("is a script if its first line has the prefix, and only lines with the prefix are run", () => {
    const steps = readPrompt("<!-- message:01 -->\nsim> say a\nnot this\nsim> sleep 5");
    assert.deepEqual(steps, [
      { word: "say", text: "a" },
      { word: "sleep", ms: 5 },
    ]);
    assert.equal(said("first\nsim> crash"), "sim: first\nsim> crash");
  });

  it("that is a callback or a trigger is acknowledged, and never run as a script", () => {
    assert.equal(said("<!-- trigger:01 -->\n\nsim> crash\nmore"), "sim: noted sim> crash");
  });

  it("that is long is echoed with its beginning and the length of the rest", () => {
    assert.match(said("x".repeat(10_000)) ?? "", /^sim: x{2000}… \(8000 characters more\)$/);
  });

  it("with an invalid line names the line", () => {
    for (const line of ["dance", "sleep soon", "sleep", "tool x [1]", 'tool x {"a":', "write"]) {
      assert.equal(readPrompt(`sim> ${line}`)[0]?.word, "unknown", line);
    }
  });

  it("may bind what a tool returned to a name", () => {
    assert.deepEqual(readPrompt('sim> tool spawn_session {"prompt":"say as c"} as d'), [
      { word: "tool", name: "spawn_session", input: { prompt: "say as c" }, as: "d" },
    ]);
    assert.deepEqual(readPrompt("sim> tool list_sessions"), [
      { word: "tool", name: "list_sessions", input: {}, as: null },
    ]);
  });
});

describe("a reference", () => {
  const bound = new Map<string, unknown>([
    ["c", { session_id: "s-1", ids: ["a", "b"], text: 'a "quoted" word' }],
  ]);

  it("is replaced inside a text, and becomes the value itself if it is the whole text", () => {
    const input = { ids: ["${c.session_id}"], all: "${c.ids}", note: "of ${c.session_id}: ${c.text}" };
    assert.deepEqual(fillInValue(input, bound), {
      ids: ["s-1"],
      all: ["a", "b"],
      note: 'of s-1: a "quoted" word',
    });
  });

  it("to an unbound name is left unchanged, for the child that it is meant for", () => {
    const input = { prompt: "sim> tool wait_session ${g.session_id}", x: "${c.nothing}" };
    assert.deepEqual(fillInValue(input, bound), input);
  });
});

describe("what a tool returned", () => {
  it("is its JSON, or the JSON of its first line, or its text", () => {
    assert.deepEqual(replyValue('{"a":1}'), { a: 1 });
    assert.deepEqual(replyValue('{"a":1}\nThe child works.'), { a: 1 });
    assert.deepEqual(replyValue("no JSON"), { text: "no JSON" });
  });
});
