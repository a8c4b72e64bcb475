import type { JsonObject } from "../../lines/json-lines.ts";
import { asList, asObject, asText } from "../../lines/value.ts";
import { called, returned, targetsOf } from "./calls.ts";
import { after } from "./ending.ts";
import { addEntry, callEntry, parsedObject, resultEntry, said, type Taken, textOf } from "./entries.ts";
import { type CodexFold, pushBounded } from "./notes.ts";
import { takeMail, takeUserItem } from "./prompts.ts";
import { shortLine } from "../../../text/cut.ts";

type Take = (fold: CodexFold, taken: Taken) => void;

/** Takes one item of the conversation with the model, wherever it stands in a row. */
export function takeItem(fold: CodexFold, taken: Taken, options: { isFlat: boolean }): void {
  const type = asText(taken.payload["type"]) ?? "";
  if (type === "message") takeMessage(fold, taken, options);
  else ITEMS.get(type)?.(fold, taken);
}

const ITEMS: ReadonlyMap<string, Take> = new Map(
  Object.entries({
    reasoning: takeReasoning,
    function_call: takeFunctionCall,
    function_call_output: takeOutput,
    custom_tool_call: takeCustomCall,
    custom_tool_call_output: takeOutput,
    local_shell_call: takeShellCall,
    local_shell_call_output: takeOutput,
    web_search_call: takeWebSearch,
    tool_search_call: takeToolSearch,
    tool_search_output: takeToolSearchOutput,
    image_generation_call: takeImage,
    agent_message: (fold: CodexFold, taken: Taken) => {
      const { author, content } = taken.payload;
      takeMail(fold, taken, { author: asText(author), text: textOf(content) });
    },
  }),
);

function takeMessage(fold: CodexFold, taken: Taken, options: { isFlat: boolean }): void {
  const { payload, at } = taken;
  const role = asText(payload["role"]);
  if (role === "user") takeUserItem(fold, taken, options);
  if (role !== "assistant") return;
  const text = textOf(payload["content"]);
  const mail = mailIn(text);
  if (mail !== null) {
    takeMail(fold, taken, mail);
    return;
  }
  if (text === "") return;
  addEntry(fold, taken, said("agent", text));
  fold.facts.messageCount += 1;
  after(fold, payload["phase"] === "commentary" ? "commentary" : "answer", at);
}

/** Earlier versions put mail between sessions into an answer, as JSON with exactly these fields. */
function mailIn(text: string): { author: string | null; text: string } | null {
  if (!text.startsWith("{") || !text.includes('"trigger_turn"')) return null;
  const fields = parsedObject(text);
  const author = asText(fields?.["author"]);
  if (author === null || asText(fields?.["recipient"]) === null) return null;
  return { author, text: asText(fields?.["content"]) ?? "" };
}

function takeReasoning(fold: CodexFold, taken: Taken): void {
  const text = textOf(taken.payload["summary"]) || textOf(taken.payload["content"]);
  if (text.trim() !== "") addEntry(fold, taken, { author: "agent", kind: "thought", body: { text } });
}

function takeFunctionCall(fold: CodexFold, taken: Taken): void {
  const { payload } = taken;
  const tool = asText(payload["name"]) ?? "a tool";
  const raw = payload["arguments"];
  const input = (typeof raw === "string" ? parsedObject(raw) : asObject(raw)) ?? {};
  const isKnown = Object.keys(input).length > 0 || raw === "{}";
  addCall(fold, taken, { tool, input: isKnown ? input : raw, fields: input, command: commandOf(input) });
}

function takeCustomCall(fold: CodexFold, taken: Taken): void {
  const { payload } = taken;
  const tool = asText(payload["name"]) ?? "a tool";
  const input = payload["input"];
  const text = asText(input);
  const callId = asText(payload["call_id"]);
  // Code that calls the agent's tools: what it starts is known from other records only.
  if (tool === "exec" && callId !== null) fold.notes.cellId = callId;
  addCall(fold, taken, { tool, input, fields: {}, command: tool === "exec" ? text : null });
}

function takeShellCall(fold: CodexFold, taken: Taken): void {
  const action = asObject(taken.payload["action"]) ?? {};
  addCall(fold, taken, { tool: "local_shell", input: action, fields: action, command: commandOf(action) });
}

interface Call {
  readonly tool: string;
  /** As it stands in the entry. */
  readonly input: unknown;
  readonly fields: JsonObject;
  readonly command: string | null;
}

const OPEN_MAX = 256;

function addCall(fold: CodexFold, taken: Taken, { tool, input, fields, command }: Call): void {
  const { payload, at } = taken;
  const { facts, notes } = fold;
  const callId = asText(payload["call_id"]) ?? asText(payload["id"]);
  facts.toolUseCount += 1;
  addEntry(fold, taken, callEntry({ callId: callId ?? "", tool, input, command }, fold.textMax));
  if (callId !== null) {
    const shown = command === null ? null : shortLine(command, 2000);
    const call = { id: callId, tool, command: shown, targets: targetsOf(fields), exitCode: null, ok: null };
    pushBounded(notes.open, call, OPEN_MAX);
    if (tool === "spawn_agent") called(fold, callId, fields, at);
  }
  after(fold, "call", at);
}

/** A list is `["bash", "-lc", "…"]`, of which people read the last. */
export function commandOf(input: JsonObject): string | null {
  const value = input["cmd"] ?? input["command"];
  if (typeof value === "string") return asText(value);
  const words = asList(value).flatMap((word) => asText(word) ?? []);
  const isShell = words.length === 3 && /^-l?c$/u.test(words[1] ?? "");
  return asText(isShell ? words[2] : words.join(" "));
}

function takeOutput(fold: CodexFold, taken: Taken): void {
  const { payload, at } = taken;
  const { notes } = fold;
  const callId = asText(payload["call_id"]) ?? asText(payload["id"]) ?? "";
  const open = notes.open.findLast(({ id }) => id === callId) ?? null;
  notes.open = notes.open.filter((call) => call !== open);
  const entry = resultEntry(callId, payload["output"], open);
  addEntry(fold, taken, entry);
  returned(fold, { callId, text: entry.body.text, open, at });
  after(fold, "result", at);
}

function takeWebSearch(fold: CodexFold, taken: Taken): void {
  const { payload } = taken;
  const action = asObject(payload["action"]) ?? {};
  const callId = asText(payload["id"]) ?? asText(payload["call_id"]) ?? "";
  fold.facts.toolUseCount += 1;
  const tool = "web_search";
  const query = asText(action["query"]) ?? asText(action["url"]) ?? tool;
  addEntry(
    fold,
    taken,
    callEntry({ callId, tool, input: { ...action, query }, command: null }, fold.textMax),
  );
}

function takeToolSearch(fold: CodexFold, taken: Taken): void {
  const input = asObject(taken.payload["arguments"]) ?? {};
  addCall(fold, taken, { tool: "tool_search", input, fields: {}, command: null });
}

/** Which tools there are; their descriptions are of no use to anyone later. */
function takeToolSearchOutput(fold: CodexFold, taken: Taken): void {
  const names = asList(taken.payload["tools"]).flatMap((item) => {
    const tool = asObject(item);
    const inside = asList(tool?.["tools"]).flatMap((other) => asText(asObject(other)?.["name"]) ?? []);
    return inside.length > 0 ? inside : (asText(tool?.["name"]) ?? []);
  });
  takeOutput(fold, { ...taken, payload: { ...taken.payload, output: names.join("\n") } });
}

function takeImage(fold: CodexFold, taken: Taken): void {
  const { payload } = taken;
  const callId = asText(payload["id"]) ?? "";
  const prompt = asText(payload["revised_prompt"]) ?? "image_generation";
  fold.facts.toolUseCount += 1;
  addEntry(
    fold,
    taken,
    callEntry({ callId, tool: "image_generation", input: { query: prompt }, command: null }, fold.textMax),
  );
}
