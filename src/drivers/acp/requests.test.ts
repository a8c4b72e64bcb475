import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CreateElicitationRequest } from "@agentclientprotocol/sdk/unstable";
import type { AgentRequest } from "../port.ts";
import { answerElicitation, answerPermission } from "./requests.ts";
import { ToolCalls } from "./update/tool-call.ts";

/** Answers the form's questions in order; null leaves a question unanswered. */
async function ask(message: string, properties: object, answers: (string | string[] | null)[] | null) {
  const asked: AgentRequest[] = [];
  const request = {
    sessionId: "s",
    mode: "form",
    message,
    requestedSchema: { type: "object", properties },
  } as unknown as CreateElicitationRequest;
  const reply = await answerElicitation(
    {
      calls: new ToolCalls(() => undefined),
      cancelled: new Promise(() => {}),
      async onRequest(one) {
        asked.push(one);
        if (answers === null) return { kind: "deny" };
        const given = answers.flatMap((answer, index) =>
          answer === null ? [] : [[`q${index + 1}`, answer] as const],
        );
        return { kind: "answer", answers: Object.fromEntries(given) };
      },
    },
    request,
  );
  const questions = asked.map((one) =>
    one.kind === "question"
      ? one.questions.map((each) => [each.text, ...each.options, ...(each.multiple ? ["(several)"] : [])])
      : [],
  );
  return { reply, questions };
}

const either = {
  oneOf: [
    { const: "small", title: "Small" },
    { const: "full", title: "Full" },
  ],
};

describe("a form", () => {
  it("with one field is one question with the text of the message", async () => {
    const { reply, questions } = await ask("Which?", { size: { type: "string", ...either } }, ["small"]);
    assert.deepEqual(questions, [[["Which?", "Small", "Full"]]]);
    assert.deepEqual(reply, { action: "accept", content: { size: "small" } });
  });

  it("with a free-text field, as Claude Code's, is one question, and an answer that is no option goes into that field", async () => {
    const properties = {
      question_0: { type: "string", title: "Dataset", ...either },
      question_0_custom: { type: "string", title: "Other", description: "Type your own answer (optional)." },
    };
    const { reply, questions } = await ask("Which dataset?", properties, ["neither of them"]);
    assert.deepEqual(questions, [[["Which dataset?", "Small", "Full"]]]);
    assert.deepEqual(reply, { action: "accept", content: { question_0_custom: "neither of them" } });
    const { reply: picked } = await ask("Which dataset?", properties, ["FULL"]);
    assert.deepEqual(picked, { action: "accept", content: { question_0: "full" } });
  });

  it("with several fields is one request with one question per field, and unanswered fields are left out", async () => {
    const properties = {
      a: { type: "string", description: "Which dataset?", ...either },
      b: { type: "array", description: "Which days?", items: { enum: ["mon", "tue", "wed"] } },
      c: { type: "integer", title: "How many?" },
      d: { type: "boolean", description: "Really?" },
    };
    const { reply, questions } = await ask("Answer these.", properties, ["Small", "mon, wed", null, "yes"]);
    assert.deepEqual(questions, [
      [
        ["Which dataset?", "Small", "Full"],
        ["Which days?", "mon", "tue", "wed", "(several)"],
        ["How many?"],
        ["Really?", "yes", "no"],
      ],
    ]);
    assert.deepEqual(reply, { action: "accept", content: { a: "small", b: ["mon", "wed"], d: true } });
  });

  it("takes several choices as a list, an option with a comma as one, and the rest as free text", async () => {
    const properties = {
      days: { type: "array", items: { enum: ["mon, early", "tue"] } },
      days_custom: { type: "string" },
    };
    const list = await ask("When?", properties, [["mon, early", "tue", "never"]]);
    const content = { days: ["mon, early", "tue"], days_custom: "never" };
    assert.deepEqual(list.reply, { action: "accept", content });
    const line = await ask("When?", properties, ["mon, early"]);
    assert.deepEqual(line.reply, { action: "accept", content: { days: ["mon, early"] } });
  });

  it("without an answer or without a field is declined", async () => {
    assert.deepEqual((await ask("Which?", { size: { type: "string" } }, null)).reply, {
      action: "decline",
    });
    assert.deepEqual((await ask("Well?", {}, [])).reply, { action: "decline" });
  });
});

describe("a request for permission", () => {
  const asked = async (toolCall: object): Promise<AgentRequest | undefined> => {
    const seen: AgentRequest[] = [];
    const options = [
      { optionId: "y", name: "Yes", kind: "allow_once" },
      { optionId: "n", name: "No", kind: "reject_once" },
    ];
    await answerPermission(
      {
        calls: new ToolCalls(() => undefined),
        cancelled: new Promise(() => {}),
        async onRequest(one) {
          seen.push(one);
          return { kind: "deny" };
        },
      },
      { sessionId: "s", toolCall: { toolCallId: "c", ...toolCall }, options } as never,
    );
    return seen[0];
  };

  it("names its risk and the offered answers, and a command is a command whatever it names", async () => {
    const locations = [{ path: "/w/a" }];
    const table: [object, string, string | null][] = [
      [{ title: "Edit a", kind: "edit", rawInput: { file: "a" }, locations }, "change", null],
      [{ title: "Read a", kind: "read", locations }, "read", null],
      [{ title: "x", kind: "edit", rawInput: { command: "rm a" }, locations }, "command", "rm a"],
      [
        { title: "make it so", kind: "execute", rawInput: { cmd: "rm a" }, locations },
        "command",
        "make it so",
      ],
      [{ title: "Fetch", kind: "fetch", rawInput: { url: "http://x" } }, "network", null],
      [{ title: "db drop", kind: "other", rawInput: { a: 1 }, locations }, "unknown", null],
    ];
    for (const [call, risk, command] of table) {
      const request = await asked(call);
      assert.ok(request?.kind === "permission");
      assert.deepEqual([request.risk, request.command, request.options], [risk, command, ["Yes", "No"]]);
    }
  });
});

describe("an agent that asks to leave its planning mode", () => {
  const options = [
    { optionId: "auto", name: "Yes, and use auto mode", kind: "allow_always" },
    { optionId: "default", name: "Yes, manually approve edits", kind: "allow_once" },
    { optionId: "no", name: "No, keep planning", kind: "reject_once" },
  ];
  const toolCall = {
    toolCallId: "c",
    title: "Ready to code?",
    kind: "switch_mode",
    rawInput: { plan: "# Ship it\n\nFirst look." },
  };
  const answeredWith = async (kind: "allow" | "deny") => {
    const seen: AgentRequest[] = [];
    const reply = await answerPermission(
      {
        calls: new ToolCalls(() => undefined),
        cancelled: new Promise(() => {}),
        async onRequest(one) {
          seen.push(one);
          return { kind };
        },
      },
      { sessionId: "s", toolCall, options } as never,
    );
    return { request: seen[0], reply };
  };

  it("submits its plan, and an approval is valid only once", async () => {
    const { request, reply } = await answeredWith("allow");
    assert.deepEqual(request, { kind: "plan", title: "Ship it", text: "# Ship it\n\nFirst look." });
    assert.deepEqual(reply, { outcome: { outcome: "selected", optionId: "default" } });
    const { reply: sentBack } = await answeredWith("deny");
    assert.deepEqual(sentBack, { outcome: { outcome: "selected", optionId: "no" } });
  });
});
