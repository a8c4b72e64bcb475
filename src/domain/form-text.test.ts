import assert from "node:assert/strict";
import { test } from "node:test";
import { answeredInForm, askedInForm } from "./form-text.ts";

const FORM = {
  questions: [
    { id: "q1", question: "Which jam?", options: ["plum", "quince"] },
    { id: "q2", question: "How much?" },
  ],
};
const NOTHING = { action: null, response: null, answers: null };

test("a form's questions stand with their options, and each answer with its question", () => {
  assert.equal(askedInForm(FORM), "Which jam?\n- plum\n- quince\n\nHow much?");
  const answers = { q1: ["plum", "quince"], "How much?": 3 };
  assert.equal(answeredInForm(FORM, { ...NOTHING, answers }), "Which jam?\nplum, quince\n\nHow much?\n3");
  assert.equal(answeredInForm(FORM, { ...NOTHING, response: " quince, a lot " }), "quince, a lot");
  const one = { questions: FORM.questions.slice(0, 1) };
  assert.equal(answeredInForm(one, { ...NOTHING, answers: { q1: "plum" } }), "plum");
});

test("a plan stands with its steps or its text, and its answer as the verdict", () => {
  assert.equal(
    askedInForm({ title: "Jam", steps: ["buy", { title: "cook" }] }),
    'Jam\n- buy\n- {"title":"cook"}',
  );
  assert.equal(askedInForm({ title: "Cook it", steps: [], description: "Cook it" }), "Cook it");
  assert.equal(answeredInForm({ title: "Jam" }, { ...NOTHING, action: "approve" }), "approved the plan");
});
