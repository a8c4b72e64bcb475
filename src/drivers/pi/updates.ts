import type { Usage } from "../../contract/index.ts";
import { type Fields, fieldsOf, isFields, numberOf } from "../../text/fields.ts";
import type { AgentUpdate, Replay } from "../port.ts";

/** Translates one of pi's events; returns no updates for events that are not part of the transcript. */
export function updatesOf(event: Fields & { readonly type: string }): AgentUpdate[] {
  switch (event.type) {
    case "message_update":
      return fragments(event["assistantMessageEvent"]);
    case "message_end":
      return messageUpdates(fieldsOf(event["message"]));
    case "tool_execution_start":
      return [callOf(event)];
    case "tool_execution_end":
      return [resultOf(event)];
    case "compaction_end":
      return compaction(event["result"]);
    default:
      return [];
  }
}

/** Null for a message that the model did not write. */
export function usageOf(message: unknown): Usage | null {
  if (!isFields(message) || message["role"] !== "assistant" || !isFields(message["usage"])) return null;
  const { usage } = message as { usage: Fields };
  const cost = numberOf(fieldsOf(usage["cost"])["total"]);
  return {
    inputTokens: numberOf(usage["input"]),
    cachedTokens: numberOf(usage["cacheRead"]),
    outputTokens: numberOf(usage["output"]),
    usd: cost > 0 ? cost : null,
  };
}

export function sum(one: Usage | null, other: Usage | null): Usage | null {
  if (one === null || other === null) return one ?? other;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    usd: one.usd === null && other.usd === null ? null : (one.usd ?? 0) + (other.usd ?? 0),
  };
}

/** `toolResults` is for results of our tools only. pi cannot call our tools, so the list is empty. */
export function replayOf(messages: unknown): Replay {
  const all = (Array.isArray(messages) ? messages : []).filter(isFields);
  const lastUser = all.findLastIndex((message) => message["role"] === "user");
  const toolCalls: number[] = [];
  for (const message of all) {
    if (message["role"] === "user") toolCalls.push(0);
    else if (toolCalls.length > 0) toolCalls.push(toolCalls.pop()! + callsIn(message));
  }
  const said = all.slice(lastUser + 1).filter((message) => message["role"] === "assistant");
  return {
    userTexts: all.filter((message) => message["role"] === "user").map(textOf),
    toolResults: [],
    toolCalls,
    lastText: said.map(textOf).findLast((text) => text !== "") ?? null,
  };
}

function callsIn(message: Fields): number {
  return blocks(message["content"]).filter((block) => block["type"] === "toolCall").length;
}

function textOf(message: Fields): string {
  const { content } = message;
  if (typeof content === "string") return content;
  return blocks(content)
    .filter((block) => block["type"] === "text")
    .map((block) => String(block["text"]))
    .join("");
}

function fragments(delta: unknown): AgentUpdate[] {
  const { type, delta: text } = fieldsOf(delta);
  if (typeof text !== "string") return [];
  if (type === "text_delta") return [{ kind: "fragment", what: "text", text }];
  return type === "thinking_delta" ? [{ kind: "fragment", what: "thought", text }] : [];
}

function compaction(result: unknown): AgentUpdate[] {
  const { summary } = fieldsOf(result);
  return typeof summary === "string" && summary !== "" ? [{ kind: "compaction", summary }] : [];
}

function messageUpdates(message: Fields): AgentUpdate[] {
  if (message["role"] !== "assistant") return [];
  return blocks(message["content"]).flatMap((block): AgentUpdate[] => {
    const { text, thinking } = block;
    if (block["type"] === "text" && typeof text === "string" && text !== "") return [{ kind: "text", text }];
    const isThought = block["type"] === "thinking" && typeof thinking === "string" && thinking !== "";
    return isThought ? [{ kind: "thought", text: thinking }] : [];
  });
}

function callOf(event: Fields): AgentUpdate {
  const tool = String(event["toolName"]);
  const input = fieldsOf(event["args"]);
  const command = typeof input["command"] === "string" ? input["command"] : undefined;
  const file = typeof input["path"] === "string" ? input["path"] : undefined;
  return {
    kind: "toolCall",
    callId: String(event["toolCallId"]),
    tool,
    title: command ?? file ?? tool,
    input,
    ...(command === undefined ? {} : { command }),
    ...(file === undefined ? {} : { paths: [file] }),
  };
}

function resultOf(event: Fields): AgentUpdate {
  const text = textOf(fieldsOf(event["result"]));
  const ok = event["isError"] !== true;
  const tool = String(event["toolName"]);
  const said = /exited with code (\d+)/.exec(text)?.[1];
  const exitCode = ok ? 0 : said === undefined ? null : Number(said);
  return {
    kind: "toolResult",
    callId: String(event["toolCallId"]),
    tool,
    text,
    ok,
    ours: false,
    ...(tool === "bash" ? { exitCode } : {}),
  };
}

function blocks(content: unknown): Fields[] {
  return (Array.isArray(content) ? content : []).filter(isFields);
}
