import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { answerCommands, askLine, askLines, type OpenTrigger, quoted, timeLeft } from "./asking.ts";
import { session } from "../../contract/testing/session.ts";

function trigger(
  type: string,
  payload: OpenTrigger["payload"],
  change: Partial<OpenTrigger> = {},
): OpenTrigger {
  return {
    id: "01900000-0000-7000-8000-0000000000cc",
    shortId: "000000cc",
    sessionId: "01900000-0000-7000-8000-00000000aaaa",
    sessionName: "perf",
    toId: null,
    toPerson: true,
    type,
    payload,
    actions: [],
    status: "open",
    round: 1,
    deadline: { personAt: null, defaultAt: null },
    default: null,
    originalId: null,
    context: null,
    answer: null,
    seenByAgentAt: null,
    createdAt: 0,
    closedAt: null,
    ...change,
  };
}

const question = trigger("ask_user_question", {
  questions: [
    { id: "q1", question: "Which dataset?\nThe small one is faster.", options: ["small", "the full one"] },
  ],
});
const plan = trigger("plan_review", {
  title: "Move it",
  description: "Safely.",
  steps: ["one", { title: "two", detail: "with care" }],
});
const permission = trigger("permission", { command: "git push", tool: "Bash", cwd: "/src/shop" });

describe("what a person is asked", () => {
  it("is described in one line by its kind", () => {
    assert.equal(askLine(question), '"Which dataset? The small one is faster."');
    assert.equal(askLine(plan), "plan of 2 steps to approve");
    assert.equal(askLine(permission), "wants to run git push");
  });
  it("is shown in full, never as a summary", () => {
    assert.deepEqual(askLines(question), ["Which dataset?", "The small one is faster."]);
    assert.deepEqual(askLines(plan), ["Move it", "Safely.", "1. one", "2. two", "   with care"]);
    assert.deepEqual(askLines(permission), ["git push", "in /src/shop"]);
  });
  it("keeps its own kind after a parent has passed it on", () => {
    const passed = trigger(
      "escalate",
      { ...plan.payload, originalType: "plan_review" },
      { originalId: plan.id },
    );
    assert.equal(askLine(passed), "plan of 2 steps to approve");
  });
  it("cannot move the cursor or colour a terminal", () => {
    const evil = trigger("ask_user_question", { questions: [{ question: "\u001b[2JYes?\u0007 \u202eno" }] });
    assert.deepEqual(askLines(evil), ["Yes? no"]);
    assert.equal(askLine(evil), '"Yes? no"');
  });
  it("comes with the commands that answer it, quoted for a shell", () => {
    const of = (kind: "Question" | "Plan" | "Permission", one: OpenTrigger, name = "perf") =>
      answerCommands({ kind, trigger: one, session: session({ name }) });
    assert.deepEqual(of("Question", question), [
      "kinfold answer perf small",
      "kinfold answer perf 'the full one'",
      'kinfold answer perf "…"',
    ]);
    assert.deepEqual(of("Permission", permission, "my perf"), [
      "kinfold answer 'my perf' --allow",
      "kinfold answer 'my perf' --deny",
    ]);
    assert.equal(of("Plan", plan)[1], 'kinfold answer perf --edit "…"');
  });
  it("several things at once are answered by their ids", () => {
    const two = trigger("ask_user_question", {
      questions: [
        { id: "db", question: "Which?", options: ["pg"] },
        { id: "port", question: "Where?" },
      ],
    });
    assert.deepEqual(askLines(two), ["db: Which?  [pg]", "port: Where?"]);
    assert.deepEqual(answerCommands({ kind: "Question", trigger: two, session: session() }), [
      "kinfold answer release db=… port=…",
    ]);
  });
});

describe("the time left", () => {
  it("is in minutes and seconds below an hour, and in words if there is no limit", () => {
    assert.equal(timeLeft(221_000, 0), "3:41 left");
    assert.equal(timeLeft(9_000, 0), "0:09 left");
    assert.equal(timeLeft(0, 9_000), "0:00 left");
    assert.equal(timeLeft(7_200_000, 0), "2 h left");
    assert.equal(timeLeft(null, 0), "no limit");
  });
});

describe("a word in a shell", () => {
  it("is quoted if the shell would interpret it", () => {
    assert.equal(quoted("small"), "small");
    assert.equal(quoted("it's $HOME"), "'it'\\''s $HOME'");
    assert.equal(quoted("--deny"), "'--deny'");
  });
});
