import { seenAt, type SessionFacts } from "../../facts.ts";
import { promptKey, shortText, timeOf } from "../../lines/text.ts";
import { asCount, asNumber, asObject, asText, type JsonObject } from "../../lines/value.ts";
import { movedOn, foldCall, reportTag } from "./calls.ts";
import { answered, prompted } from "./ending.ts";
import { completedAt, createdAt } from "./entries.ts";
import { type Message, type Part, type SessionRecord, timesOf } from "./source.ts";
import { readTaskTag } from "./task-tag.ts";
import { shortLine } from "../../../text/fence.ts";

/** Sets the facts from the session's own record. It can change at any time, so each batch reads it again. */
export function foldSession(facts: SessionFacts, session: SessionRecord): void {
  facts.cwd = session.directory ?? facts.cwd;
  facts.agentVersion = session.version ?? facts.agentVersion;
  facts.createdAt = session.createdAt ?? facts.createdAt;
  const title = shortText(session.title);
  facts.title = title === null || UNNAMED.test(title) ? null : title;
  if (session.parentId === null) return;
  facts.isSubagent = true;
  facts.parent = { id: session.parentId, callId: null, how: "its own record names its parent" };
  const named = SUBAGENT.exec(title ?? "");
  facts.description = named?.[1] ?? title;
  facts.title = named?.[1] ?? facts.title;
  facts.agentType = session.agent ?? named?.[2] ?? null;
}

/** A title that OpenCode gives by default. */
const UNNAMED = /^(New|Child) session - \d{4}-/u;
const SUBAGENT = /^(.*) \(@(.+) subagent\)$/u;

export function foldMessage(facts: SessionFacts, message: Message): void {
  facts.firstRef ??= message.id;
  const at = createdAt(message) || null;
  facts.createdAt ??= at;
  seenAt(facts, at);
  seenAt(facts, completedAt(message));
  for (const { data } of message.parts) seenAt(facts, timeOf(timesOf(data)?.["end"]));
  if (message.data["role"] === "user") foldUser(facts, message, at);
  else if (message.data["role"] === "assistant") foldAnswer(facts, message, at);
}

function foldUser(facts: SessionFacts, message: Message, at: number | null): void {
  const asked = message.parts.flatMap(askedIn);
  for (const { data } of message.parts) {
    const tag = data["synthetic"] === true ? readTaskTag(asText(data["text"]) ?? "") : null;
    if (tag !== null) reportTag(facts, tag, at);
  }
  if (asked.length > 0) {
    const text = asked.join("\n");
    facts.firstPrompt ??= shortLine(text, 200);
    facts.promptKey ??= promptKey(text);
  }
  facts.messageCount += 1;
  facts.promptedAt = at ?? facts.promptedAt;
  prompted(facts, at);
}

function askedIn({ data }: Part): string[] {
  const text = data["type"] === "subtask" ? data["prompt"] : data["type"] === "text" ? data["text"] : null;
  return asText(text) === null || data["synthetic"] === true ? [] : [text as string];
}

function foldAnswer(facts: SessionFacts, message: Message, at: number | null): void {
  const { data, parts } = message;
  movedOn(facts);
  facts.messageCount += 1;
  const [provider, model] = [asText(data["providerID"]), asText(data["modelID"])];
  if (model !== null) facts.model = provider === null ? model : `${provider}/${model}`;
  facts.cwd ??= asText(asObject(data["path"])?.["cwd"]);
  countUsage(facts, data);
  for (const part of parts) if (part.data["type"] === "tool") foldTool(facts, part, at);
  answered(facts, message);
}

function foldTool(facts: SessionFacts, part: Part, at: number | null): void {
  facts.toolUseCount += 1;
  if (part.data["tool"] === "task") foldCall(facts, part.data, part.createdAt ?? at);
}

/** OpenCode counts cache writes and reasoning separately. Here they count as input and output tokens. */
function countUsage({ usage }: SessionFacts, data: JsonObject): void {
  const tokens = asObject(data["tokens"]) ?? {};
  const cache = asObject(tokens["cache"]) ?? {};
  usage.inputTokens += asCount(tokens["input"]) + asCount(cache["write"]);
  usage.cachedTokens += asCount(cache["read"]);
  usage.outputTokens += asCount(tokens["output"]) + asCount(tokens["reasoning"]);
  const cost = asNumber(data["cost"]);
  if (cost !== null) usage.usd = (usage.usd ?? 0) + Math.max(0, cost);
}
