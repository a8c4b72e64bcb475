import {
  callBody,
  type NewEntry,
  planBody,
  planned,
  pushEntry,
  resultBody,
  textOfBlocks,
} from "../../lines/entry-body.ts";
import type { Row } from "../../lines/json-lines.ts";
import { asNumber, asObject, asText, firstText, type JsonObject } from "../../lines/value.ts";
import { markOf } from "./mark.ts";
import type { CodexFold, OpenCall } from "./notes.ts";
import { parsedObject } from "../../lines/parse-json.ts";

export interface ParsedRow {
  readonly row: Row;
  readonly payload: JsonObject;
  readonly at: number | null;
  readonly ref: string;
  count: number;
}

/**
 * Returns a row's ref: its number (in older files its offset) and a hash of its content. A number stays the
 * same when bytes move. The hash is needed because a rolled-back session reuses numbers and a file may be
 * replaced.
 */
export function refOf({ value, offset }: Row): string {
  const ordinal = asNumber(value["ordinal"]);
  return `${ordinal === null ? `@${offset}` : ordinal}:${markOf(value)}`;
}

export function addEntry(fold: CodexFold, parsed: ParsedRow, entry: NewEntry): void {
  const ref = parsed.count === 0 ? parsed.ref : `${parsed.ref}#${parsed.count}`;
  parsed.count += 1;
  addEntryAt(fold, { ref, at: parsed.at }, entry);
}

export function addEntryAt(
  fold: CodexFold,
  { ref, at }: { ref: string; at: number | null },
  entry: NewEntry,
): void {
  fold.notes.lastRef = ref;
  pushEntry(fold, fold.facts, { ...entry, ref, at });
}

export interface ToolCall {
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
  readonly command: string | null;
}

export function callEntry({ callId, tool, input, command }: ToolCall, textMax: number): NewEntry {
  const fields = asObject(input) ?? {};
  if (tool === "update_plan") return planEntry(fields);
  const path = firstText(fields, "path", "file_path", "workdir");
  const title = command ?? firstText(fields, "message", "task_name", "query", "path");
  const call = { callId, tool, input, command, path: command === null ? path : null, title };
  return { author: "agent", kind: "toolCall", body: callBody(call, textMax) };
}

function planEntry(fields: JsonObject): NewEntry {
  const plan = planBody(fields["plan"], ["step"]);
  const text = [asText(fields["explanation"]), plan.text].filter((part) => part).join("\n");
  return planned({ ...plan, text });
}

export function resultEntry(callId: string, output: unknown, call: OpenCall | null): NewEntry {
  const { text, exitCode, failed } = readOutput(output, call);
  const ok = call?.ok ?? (failed ? false : exitCode === null || exitCode === 0);
  return { author: "tool", kind: "toolResult", body: resultBody({ text, callId, ok }, call, exitCode) };
}

interface Output {
  readonly text: string;
  readonly exitCode: number | null;
  readonly failed: boolean;
}

/** The output is a string, a list of items, or (in older versions) JSON with the command's output in it. */
function readOutput(output: unknown, call: OpenCall | null): Output {
  const wrapped = asObject(output);
  const text = typeof output === "string" ? output : textOf(wrapped?.["content"] ?? output);
  const failed = wrapped?.["success"] === false;
  const inner = text.startsWith('{"output":') ? parsedObject(text) : null;
  const exitCode =
    call?.exitCode ?? asNumber(asObject(inner?.["metadata"])?.["exit_code"]) ?? exitCodeIn(text);
  return { text: asText(inner?.["output"]) ?? text, exitCode, failed };
}

/** Finds the exit code in the lines that Codex puts before a command's output. */
function exitCodeIn(text: string): number | null {
  const end = text.indexOf("\nOutput:\n");
  if (end < 0 || end > 1000) return null;
  const code = /^(?:Exit code:|Process exited with code) (-?\d{1,6})$/mu.exec(text.slice(0, end))?.[1];
  return code === undefined ? null : Number(code);
}

/** Images and encrypted blocks become placeholders. */
export function textOf(content: unknown): string {
  return textOfBlocks(content, (_, type) => {
    if (type?.includes("image")) return "[image]";
    return type === "encrypted_content" ? "[encrypted]" : null;
  });
}

/** Returns the part of an error that a person reads. Providers answer with JSON that contains the message. */
export function errorText(text: string): string {
  const fields = parsedObject(text);
  return asText(asObject(fields?.["error"])?.["message"]) ?? asText(fields?.["message"]) ?? text;
}
