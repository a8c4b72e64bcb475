import { asList, asObject, asText, firstText, type JsonObject, pushBounded } from "../../lines/value.ts";
import { called, returned, targetsOf } from "./calls.ts";
import { said, thought } from "../../lines/entry-body.ts";
import { shortText } from "../../lines/text.ts";
import { after } from "./ending.ts";
import { addEntry, callEntry, resultEntry, type ParsedRow, textOf } from "./entries.ts";
import type { CodexFold } from "./notes.ts";
import { foldMail, foldUserItem } from "./prompts.ts";
import { parsedObject } from "../../lines/parse-json.ts";

type Take = (fold: CodexFold, parsed: ParsedRow) => void;

export function foldItem(fold: CodexFold, parsed: ParsedRow, options: { isFlat: boolean }): void {
  const type = asText(parsed.payload["type"]) ?? "";
  if (type === "message") foldMessage(fold, parsed, options);
  else ITEMS.get(type)?.(fold, parsed);
}

const ITEMS = new Map(
  Object.entries<Take>({
    reasoning: foldReasoning,
    function_call: foldFunctionCall,
    function_call_output: foldOutput,
    custom_tool_call: foldCustomCall,
    custom_tool_call_output: foldOutput,
    local_shell_call: foldShellCall,
    local_shell_call_output: foldOutput,
    web_search_call: foldWebSearch,
    tool_search_call: foldToolSearch,
    tool_search_output: foldToolSearchOutput,
    image_generation_call: foldImage,
    agent_message: (fold, parsed) => {
      const { author, content } = parsed.payload;
      foldMail(fold, parsed, { author: asText(author), text: textOf(content) });
    },
  }),
);

function foldMessage(fold: CodexFold, parsed: ParsedRow, options: { isFlat: boolean }): void {
  const { payload, at } = parsed;
  const role = asText(payload["role"]);
  if (role === "user") foldUserItem(fold, parsed, options);
  if (role !== "assistant") return;
  const text = textOf(payload["content"]);
  const mail = mailIn(text);
  if (mail !== null) {
    foldMail(fold, parsed, mail);
    return;
  }
  if (text === "") return;
  addEntry(fold, parsed, said("agent", text));
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

function foldReasoning(fold: CodexFold, parsed: ParsedRow): void {
  const text = textOf(parsed.payload["summary"]) || textOf(parsed.payload["content"]);
  if (text.trim() !== "") addEntry(fold, parsed, thought(text));
}

function foldFunctionCall(fold: CodexFold, parsed: ParsedRow): void {
  const { payload } = parsed;
  const tool = asText(payload["name"]) ?? "a tool";
  const raw = payload["arguments"];
  const input = (typeof raw === "string" ? parsedObject(raw) : asObject(raw)) ?? {};
  const isKnown = Object.keys(input).length > 0 || raw === "{}";
  addCall(fold, parsed, { tool, input: isKnown ? input : raw, fields: input, command: commandOf(input) });
}

function foldCustomCall(fold: CodexFold, parsed: ParsedRow): void {
  const { payload } = parsed;
  const tool = asText(payload["name"]) ?? "a tool";
  const input = payload["input"];
  const text = asText(input);
  const callId = asText(payload["call_id"]);
  // In code mode, the code of an `exec` call can start sub-agents. Only other records show which ones.
  if (tool === "exec" && callId !== null) fold.notes.cellId = callId;
  addCall(fold, parsed, { tool, input, fields: {}, command: tool === "exec" ? text : null });
}

function foldShellCall(fold: CodexFold, parsed: ParsedRow): void {
  const action = asObject(parsed.payload["action"]) ?? {};
  addCall(fold, parsed, { tool: "local_shell", input: action, fields: action, command: commandOf(action) });
}

interface Call {
  readonly tool: string;
  readonly input: unknown;
  readonly fields: JsonObject;
  readonly command: string | null;
}

const OPEN_MAX = 256;

function addCall(fold: CodexFold, parsed: ParsedRow, { tool, input, fields, command }: Call): void {
  const { payload, at } = parsed;
  const { facts, notes } = fold;
  const callId = firstText(payload, "call_id", "id");
  facts.toolUseCount += 1;
  addEntry(fold, parsed, callEntry({ callId: callId ?? "", tool, input, command }, fold.textMax));
  if (callId !== null) {
    const shown = { tool, command: shortText(command, 2000), targets: targetsOf(fields) };
    const call = { id: callId, ...shown, exitCode: null, ok: null };
    pushBounded(notes.open, call, OPEN_MAX);
    if (tool === "spawn_agent") called(fold, callId, { input: fields, at });
  }
  after(fold, "call", at);
}

/** Returns the command as people read it. For a list like `["bash", "-lc", "…"]` that is the last item. */
export function commandOf(input: JsonObject): string | null {
  const value = input["cmd"] ?? input["command"];
  if (typeof value === "string") return asText(value);
  const words = asList(value).flatMap((word) => asText(word) ?? []);
  const isShell = words.length === 3 && /^-l?c$/u.test(words[1] ?? "");
  return asText(isShell ? words[2] : words.join(" "));
}

function foldOutput(fold: CodexFold, parsed: ParsedRow): void {
  const { payload, at } = parsed;
  const { notes } = fold;
  const callId = firstText(payload, "call_id", "id") ?? "";
  const open = notes.open.findLast(({ id }) => id === callId) ?? null;
  notes.open = notes.open.filter((call) => call !== open);
  const entry = resultEntry(callId, payload["output"], open);
  addEntry(fold, parsed, entry);
  returned(fold, { callId, text: entry.body.text, open, at });
  after(fold, "result", at);
}

function foldWebSearch(fold: CodexFold, parsed: ParsedRow): void {
  const action = asObject(parsed.payload["action"]) ?? {};
  const query = firstText(action, "query", "url") ?? "web_search";
  addBuiltIn(fold, parsed, { tool: "web_search", input: { ...action, query } });
}

function foldImage(fold: CodexFold, parsed: ParsedRow): void {
  const query = asText(parsed.payload["revised_prompt"]) ?? "image_generation";
  addBuiltIn(fold, parsed, { tool: "image_generation", input: { query } });
}

/** Adds a call of a tool that the provider runs. It has no separate result. */
function addBuiltIn(fold: CodexFold, parsed: ParsedRow, call: { tool: string; input: JsonObject }): void {
  const callId = firstText(parsed.payload, "id", "call_id") ?? "";
  fold.facts.toolUseCount += 1;
  addEntry(fold, parsed, callEntry({ ...call, callId, command: null }, fold.textMax));
}

function foldToolSearch(fold: CodexFold, parsed: ParsedRow): void {
  const input = asObject(parsed.payload["arguments"]) ?? {};
  addCall(fold, parsed, { tool: "tool_search", input, fields: {}, command: null });
}

/** Keeps only the tools' names: their descriptions are not needed later. */
function foldToolSearchOutput(fold: CodexFold, parsed: ParsedRow): void {
  const names = asList(parsed.payload["tools"]).flatMap((item) => {
    const tool = asObject(item);
    const inside = asList(tool?.["tools"]).flatMap((other) => asText(asObject(other)?.["name"]) ?? []);
    return inside.length > 0 ? inside : (asText(tool?.["name"]) ?? []);
  });
  foldOutput(fold, { ...parsed, payload: { ...parsed.payload, output: names.join("\n") } });
}
