import { flat, list, message, newId, parsed, pieces, USED } from "./request.ts";
import type { Body, JsonSchema, ModelAnswer, ModelMessage, OfferedTool, Wire } from "./request.ts";

/** The format of OpenAI's Responses API. */
export const responses: Wire = {
  parse(body) {
    const input = body["input"];
    const items = typeof input === "string" ? [{ role: "user", content: input }] : list(input);
    const { messages, system } = conversationOf(items);
    const loaded = items.filter((item) => item["type"] === "tool_search_output");
    const tools = [...list(body["tools"]), ...loaded.flatMap((item) => list(item["tools"]))];
    const text = body["text"] as { format?: { schema?: JsonSchema } } | undefined;
    return {
      model: String(body["model"]),
      isStream: body["stream"] === true,
      system: [flat(body["instructions"]), ...system].join("\n"),
      messages,
      tools: tools.flatMap((tool) => offered(tool)),
      schema: text?.format?.schema ?? null,
    };
  },
  whole: (answer, model) => ({
    id: newId("resp_"),
    object: "response",
    created_at: Math.floor(Date.now() / 1000),
    status: "completed",
    model,
    output: itemsOf(answer),
    usage: {
      input_tokens: USED.input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: USED.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: USED.input + USED.output,
    },
  }),
  stream(answer, model) {
    const whole = this.whole(answer, model) as Body & { output: Item[] };
    const opened = { ...whole, status: "in_progress", output: [], usage: null };
    const events: [string, Body][] = [
      ["response.created", { response: opened }],
      ["response.in_progress", { response: opened }],
      ...whole.output.flatMap((item, index) => itemEvents(item, index)),
      ["response.completed", { response: whole }],
    ];
    return events.map(([type, rest], index) => [type, { type, sequence_number: index, ...rest }]);
  },
  error: (status, text) => ({ error: { type: errorType(status), code: null, message: text } }),
};

/** Agents retry after every type of error except `invalid_request_error`. */
function errorType(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

type Item = Body & { readonly type: string; readonly id: string };

function conversationOf(items: readonly Body[]): { messages: ModelMessage[]; system: string[] } {
  const messages: ModelMessage[] = [];
  const system: string[] = [];
  const last = (role: "user" | "assistant", isFit: (one: ModelMessage) => boolean): ModelMessage => {
    const newest = messages.at(-1);
    if (newest?.role === role && isFit(newest)) return newest;
    messages.push(message(role));
    return messages.at(-1) as ModelMessage;
  };
  for (const item of items) {
    const type = typeof item["type"] === "string" ? item["type"] : "message";
    const role = item["role"];
    if (type === "message" && (role === "developer" || role === "system")) system.push(flat(item["content"]));
    else if (type === "message" && role === "assistant")
      last("assistant", () => true).text += flat(item["content"]);
    else if (type === "message") messages.push(message("user", flat(item["content"])));
    else if (type.endsWith("_call")) last("assistant", () => true).calls.push(callOf(item, type));
    else if (type.endsWith("_output"))
      last("user", (one) => one.results.length > 0).results.push({
        text: flat(item["output"] ?? item["tools"]),
      });
  }
  return { messages, system };
}

function callOf(item: Body, type: string): { name: string; input: unknown } {
  const name = `${flat(item["namespace"])}${flat(item["name"]) || type}`;
  return { name, input: parsed(item["arguments"] ?? item["input"] ?? item["action"]) };
}

function offered(tool: Body, namespace?: string): OfferedTool[] {
  const bare = flat(tool["name"]) || flat(tool["type"]);
  if (tool["type"] === "namespace") return list(tool["tools"]).flatMap((one) => offered(one, bare));
  const kind = flat(tool["type"]);
  if (namespace === undefined) return [{ name: bare, bare, kind }];
  return [{ name: `${namespace.replace(/_*$/, "")}__${bare}`, bare, kind, namespace }];
}

function itemsOf(answer: ModelAnswer): Item[] {
  const content = [{ type: "output_text", text: answer.text, annotations: [] }];
  const said: Item = {
    type: "message",
    id: newId("msg_"),
    role: "assistant",
    status: "completed",
    content,
  };
  const isSilent = answer.text === "" && answer.calls.length > 0;
  return [...(isSilent ? [] : [said]), ...answer.calls.map(callItem)];
}

function callItem({ tool, input }: ModelAnswer["calls"][number]): Item {
  const call_id = newId("call_");
  const status = "completed";
  const base = {
    call_id,
    status,
    name: tool.bare ?? tool.name,
    ...(tool.namespace === undefined ? {} : { namespace: tool.namespace }),
  };
  if (tool.kind === "tool_search") {
    return {
      type: "tool_search_call",
      id: newId("tsc_"),
      call_id,
      status,
      execution: "client",
      arguments: input,
    };
  }
  const text = typeof input === "string" ? input : JSON.stringify(input);
  if (tool.kind === "custom") return { type: "custom_tool_call", id: newId("ctc_"), ...base, input: text };
  return { type: "function_call", id: newId("fc_"), ...base, arguments: text };
}

function itemEvents(item: Item, output_index: number): [string, Body][] {
  const at = { item_id: item.id, output_index };
  const added: [string, Body] = [
    "response.output_item.added",
    {
      output_index,
      item: { ...item, status: "in_progress", ...(item.type === "message" && { content: [] }) },
    },
  ];
  const done: [string, Body] = ["response.output_item.done", { output_index, item }];
  if (item.type === "function_call") {
    const text = flat(item["arguments"]);
    return [
      added,
      ["response.function_call_arguments.delta", { ...at, delta: text }],
      ["response.function_call_arguments.done", { ...at, arguments: text }],
      done,
    ];
  }
  if (item.type !== "message") return [added, done];
  const text = flat(item["content"]);
  const part = { type: "output_text", text, annotations: [] };
  const within = { ...at, content_index: 0 };
  return [
    added,
    ["response.content_part.added", { ...within, part: { ...part, text: "" } }],
    ...pieces(text).map((delta): [string, Body] => ["response.output_text.delta", { ...within, delta }]),
    ["response.output_text.done", { ...within, text }],
    ["response.content_part.done", { ...within, part }],
    done,
  ];
}
