import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { answersTo } from "./form-answer.ts";

const question = (id: string, text: string) => ({ id, text, options: [], multiple: false });
const two = [question("q1", "Which dataset?"), question("q2", "Which days?")];

describe("the answer to a form", () => {
  it("is assigned by the questions' ids or texts", () => {
    const answers = { q1: "small", "Which days?": ["mon", "wed"] };
    assert.deepEqual(answersTo(two, { response: null, answers }), { q1: "small", q2: ["mon", "wed"] });
  });

  it("leaves out what nobody answered", () => {
    assert.deepEqual(answersTo(two, { response: null, answers: { q2: 3 } }), { q2: "3" });
  });

  it("in words has a line for each question, or answers the first", () => {
    const said = (response: string) => answersTo(two, { response, answers: null });
    assert.deepEqual(said("1. small\n2. mon, wed"), { q1: "small", q2: "mon, wed" });
    assert.deepEqual(said("small"), { q1: "small" });
    const one = answersTo(two.slice(0, 1), { response: "first\nsecond", answers: null });
    assert.deepEqual(one, { q1: "first\nsecond" });
  });

  it("with one question takes any answer, under any name", () => {
    const answers = { answer: "small" };
    assert.deepEqual(answersTo(two.slice(0, 1), { response: null, answers }), { q1: "small" });
  });
});
