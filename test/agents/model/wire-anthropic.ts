import { flat, list, message, newId, pieces, USED } from "./request.ts";
import type { Body, JsonSchema, ModelAnswer, ModelMessage, Wire } from "./request.ts";

/** The Anthropic Messages API. */
export const anthropic: Wire = {
  parse: (body) => ({
    model: String(body["model"]),
    isStream: body["stream"] === true,
    system: flat(body["system"]),
    messages: list(body["messages"]).map(messageOf),
    tools: list(body["tools"]).map((tool) => ({ name: String(tool["name"]) })),
    schema: schemaOf(body),
  }),
  whole: (answer, model) => ({
    id: newId("msg_"),
    type: "message",
    role: "assistant",
    model,
    content: blocks(answer),
    stop_reason: answer.calls.length > 0 ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: { input_tokens: USED.input, output_tokens: USED.output },
  }),
  stream(answer, model) {
    const whole = this.whole(answer, model) as { content: Block[]; stop_reason: string };
    const usage = { input_tokens: USED.input, output_tokens: 1 };
    const events: [string, Body][] = [
      ["message_start", { message: { ...whole, content: [], stop_reason: null, usage } }],
    ];
    for (const [index, block] of whole.content.entries()) events.push(...blockEvents(block, index));
    const delta = { stop_reason: whole.stop_reason, stop_sequence: null };
    events.push(["message_delta", { delta, usage: { output_tokens: USED.output } }], ["message_stop", {}]);
    return events.map(([type, rest]) => [type, { type, ...rest }]);
  },
  error: (status, text) => ({
    type: "error",
    error: { type: ERRORS[status] ?? "api_error", message: text },
  }),
};

const ERRORS: Readonly<Record<number, string>> = { 400: "invalid_request_error", 429: "rate_limit_error" };

type Block =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: unknown };

function messageOf(from: Body): ModelMessage {
  const to = message(from["role"] === "assistant" ? "assistant" : "user");
  const content = from["content"];
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : list(content);
  const texts: string[] = [];
  for (const part of parts as Body[]) {
    if (part["type"] === "text") texts.push(String(part["text"]));
    if (part["type"] === "tool_use") to.calls.push({ name: String(part["name"]), input: part["input"] });
    if (part["type"] === "tool_result") to.results.push({ text: flat(part["content"]) });
  }
  to.text = texts.join("\n");
  return to;
}

function schemaOf(body: Body): JsonSchema | null {
  const config = body["output_config"] as { format?: { schema?: JsonSchema } } | undefined;
  const format = body["output_format"] as { schema?: JsonSchema } | undefined;
  return config?.format?.schema ?? format?.schema ?? null;
}

function blocks(answer: ModelAnswer): Block[] {
  const text: Block[] =
    answer.text !== "" || answer.calls.length === 0 ? [{ type: "text", text: answer.text }] : [];
  const calls = answer.calls.map((call): Block => ({
    type: "tool_use",
    id: newId("toolu_"),
    name: call.tool.name,
    input: call.input,
  }));
  return [...text, ...calls];
}

function blockEvents(block: Block, index: number): [string, Body][] {
  const start = block.type === "text" ? { type: "text", text: "" } : { ...block, input: {} };
  const deltas =
    block.type === "text"
      ? pieces(block.text).map((text) => ({ type: "text_delta", text }))
      : [{ type: "input_json_delta", partial_json: JSON.stringify(block.input) }];
  return [
    ["content_block_start", { index, content_block: start }],
    ...deltas.map((delta): [string, Body] => ["content_block_delta", { index, delta }]),
    ["content_block_stop", { index }],
  ];
}
