import { flat, list, message, newId, parsed, pieces, USED } from "./request.ts";
import type { Body, JsonSchema, ModelAnswer, ModelMessage, Wire } from "./request.ts";
import { responses } from "./wire-responses.ts";

/** The wire format of OpenAI Chat Completions. */
export const completions: Wire = {
  parse(body) {
    const all = list(body["messages"]);
    const isSystem = (one: Body): boolean => one["role"] === "system" || one["role"] === "developer";
    const format = body["response_format"] as { json_schema?: { schema?: JsonSchema } } | undefined;
    return {
      model: String(body["model"]),
      isStream: body["stream"] === true,
      system: all
        .filter(isSystem)
        .map((one) => flat(one["content"]))
        .join("\n"),
      messages: joined(all.filter((one) => !isSystem(one))),
      tools: list(body["tools"]).map((tool) => ({
        name: flat((tool["function"] as Body | undefined)?.["name"] ?? tool["name"]),
      })),
      schema: format?.json_schema?.schema ?? null,
    };
  },
  whole(answer, model) {
    const calls = callsOf(answer).map(({ index: _, ...call }) => call);
    return {
      ...head(model),
      object: "chat.completion",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: answer.text || null,
            ...(calls.length > 0 && { tool_calls: calls }),
          },
          finish_reason: calls.length > 0 ? "tool_calls" : "stop",
        },
      ],
      usage: USAGE,
    };
  },
  stream(answer, model) {
    const base = { ...head(model), object: "chat.completion.chunk" };
    const chunk = (delta: unknown, finish_reason: string | null = null): [null, unknown] => [
      null,
      { ...base, choices: [{ index: 0, delta, finish_reason }] },
    ];
    const calls = callsOf(answer);
    return [
      chunk({ role: "assistant", content: "" }),
      ...pieces(answer.text).map((content) => chunk({ content })),
      ...calls.map((call) => chunk({ tool_calls: [call] })),
      chunk({}, calls.length > 0 ? "tool_calls" : "stop"),
      [null, { ...base, choices: [], usage: USAGE }],
      [null, "[DONE]"],
    ];
  },
  error: (status, text) => responses.error(status, text),
};

const USAGE = {
  prompt_tokens: USED.input,
  completion_tokens: USED.output,
  total_tokens: USED.input + USED.output,
};

function joined(all: readonly Body[]): ModelMessage[] {
  const messages: ModelMessage[] = [];
  for (const one of all) {
    const newest = messages.at(-1);
    if (one["role"] === "tool") {
      const to = newest?.role === "user" && newest.results.length > 0 ? newest : message("user");
      if (to !== newest) messages.push(to);
      to.results.push({ text: flat(one["content"]) });
      continue;
    }
    const to = message(one["role"] === "assistant" ? "assistant" : "user", flat(one["content"]));
    for (const call of list(one["tool_calls"])) {
      const { name, arguments: input } = (call["function"] ?? {}) as Body;
      to.calls.push({ name: flat(name), input: parsed(input) });
    }
    messages.push(to);
  }
  return messages;
}

function callsOf(answer: ModelAnswer) {
  return answer.calls.map(({ tool, input }, index) => ({
    index,
    id: newId("call_"),
    type: "function",
    function: { name: tool.name, arguments: JSON.stringify(input) },
  }));
}

function head(model: string): Body {
  return { id: newId("chatcmpl-"), created: Math.floor(Date.now() / 1000), model };
}
