import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startModel } from "./server.ts";
import type { Model } from "./server.ts";
import type { Rule } from "./script.ts";

const RULES: Rule[] = [
  {
    name: "go",
    on: /GO/,
    steps: [
      { call: { tool: "spawn", input: { p: 1 } }, capture: { id: /id=(\w+)/ } },
      { call: { tool: "poll", input: { id: "${id}" } }, until: /done/ },
      { say: "end ${id}" },
    ],
  },
  { name: "fails", on: /FAIL/, steps: [{ error: { status: 429, message: "slow", times: 1 }, say: "fine" }] },
  { name: "hangs", on: /HANG/, steps: [{ say: "x".repeat(300), hang: true }] },
];

type Past = readonly ["user" | "call" | "result", string];

/** How each vendor encodes the same history, and where its reply contains the answer. */
interface Form {
  readonly path: (isStream: boolean) => string;
  readonly body: (past: readonly Past[], tools: readonly string[]) => Record<string, unknown>;
}

const FORMS: Record<string, Form> = {
  anthropic: {
    path: () => "/v1/messages",
    body: (past, tools) => ({
      messages: past.map(([kind, text]) => {
        if (kind === "user") return { role: "user", content: text };
        if (kind === "result")
          return { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: text }] };
        return { role: "assistant", content: [{ type: "tool_use", id: "t", name: text, input: {} }] };
      }),
      tools: tools.map((name) => ({ name, input_schema: {} })),
    }),
  },
  responses: {
    path: () => "/v1/responses",
    body: (past, tools) => ({
      input: past.map(([kind, text]) => {
        if (kind === "user") return { role: "user", content: text };
        if (kind === "result") return { type: "function_call_output", call_id: "t", output: text };
        return { type: "function_call", call_id: "t", name: text, arguments: "{}" };
      }),
      tools: tools.map((name) => ({ type: "function", name })),
    }),
  },
  completions: {
    path: () => "/v1/chat/completions",
    body: (past, tools) => ({
      messages: past.map(([kind, text]) => {
        if (kind === "user") return { role: "user", content: text };
        if (kind === "result") return { role: "tool", tool_call_id: "t", content: text };
        return { role: "assistant", tool_calls: [{ id: "t", function: { name: text, arguments: "{}" } }] };
      }),
      tools: tools.map((name) => ({ type: "function", function: { name } })),
    }),
  },
  gemini: {
    path: (isStream) => `/v1beta/models/g:${isStream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: (past, tools) => ({
      contents: past.map(([kind, text]) => {
        if (kind === "user") return { role: "user", parts: [{ text }] };
        if (kind === "result")
          return {
            role: "user",
            parts: [{ functionResponse: { name: "f", response: { output: text } } }],
          };
        return { role: "model", parts: [{ functionCall: { name: text, args: {} } }] };
      }),
      tools: tools.length === 0 ? [] : [{ functionDeclarations: tools.map((name) => ({ name })) }],
    }),
  },
};

for (const [name, form] of Object.entries(FORMS)) {
  describe(`the scripted model in the form of ${name}`, () => {
    let model: Model;
    before(async () => {
      model = await startModel(RULES);
    });
    after(() => model.close());

    const post = (past: readonly Past[], stream: boolean, tools = ["x__spawn", "x__poll"]) =>
      fetch(model.url + form.path(stream), {
        method: "POST",
        body: JSON.stringify({ ...form.body(past, tools), model: "m", stream }),
      });
    const told = async (past: readonly Past[], tools?: string[]): Promise<string> => {
      await (await post(past, false, tools)).json();
      const stream = await (await post(past, true, tools)).text();
      assert.match(stream, /^(?:event: .*\n)?data: /);
      return model.asked.at(-1)?.answer ?? "";
    };

    it("finds its step in the history", async () => {
      const past: Past[] = [["user", "GO now"]];
      assert.equal(await told(past), 'x__spawn({"p":1})');
      past.push(["call", "x__spawn"], ["result", "id=k7"]);
      assert.equal(await told(past), 'x__poll({"id":"k7"})');
      past.push(["call", "x__poll"], ["result", "not yet"]);
      assert.equal(await told(past), 'x__poll({"id":"k7"})');
      past.push(["call", "x__poll"], ["result", "done"]);
      assert.equal(await told(past), "end k7");
    });

    it("answers a request without tools beside the script", async () => {
      assert.equal(await told([["user", "GO"]], []), '"scripted"');
    });

    it("fails as often as its script says", async () => {
      assert.equal((await post([["user", "FAIL"]], true)).status, 429);
      assert.equal((await post([["user", "FAIL"]], true)).status, 200);
    });

    it("records that the agent disconnected", async () => {
      const response = await post([["user", "HANG"]], true);
      const reader = response.body?.getReader();
      await reader?.read();
      await reader?.cancel();
      while (model.asked.at(-1)?.isOver !== true) await new Promise((resolve) => setTimeout(resolve, 5));
      assert.equal(model.asked.at(-1)?.isCut, true);
    });
  });
}
