import type { Row } from "../../lines/json-lines.ts";
import type { HistoryEntry } from "../../port.ts";
import { callBody, planBody, resultBody } from "../../lines/entry-body.ts";
import { cut } from "../../lines/text.ts";
import { asList, asNumber, asObject, asText, type JsonObject } from "../../lines/value.ts";
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

export type NewEntry = Pick<HistoryEntry, "author" | "kind" | "body">;

/**
 * Returns a row's ref. Newer files number their records, so that refs survive when bytes move. The mark of
 * the content is needed because a rolled-back session reuses numbers and a file may be replaced.
 */
export function refOf({ value, offset }: Row): string {
  const ordinal = asNumber(value["ordinal"]);
  return `${ordinal === null ? `@${offset}` : ordinal}:${markOf(value)}`;
}

export function addEntry(fold: CodexFold, parsed: ParsedRow, entry: NewEntry): void {
  const ref = parsed.count === 0 ? parsed.ref : `${parsed.ref}#${parsed.count}`;
  parsed.count += 1;
  pushEntry(fold, { ref, at: parsed.at, entry });
}

export function pushEntry(
  fold: CodexFold,
  { ref, at, entry }: { ref: string; at: number | null; entry: NewEntry },
): void {
  const { facts, notes } = fold;
  notes.lastRef = ref;
  fold.entries.push({
    ref,
    inlineId: null,
    author: entry.author,
    kind: entry.kind,
    body: { ...entry.body, text: cut(entry.body.text, fold.textMax) },
    isSubagent: facts.isSubagent,
    at: at ?? facts.lastAt ?? facts.createdAt ?? 0,
  });
}

export function said(author: HistoryEntry["author"], text: string): NewEntry {
  return { author, kind: "text", body: { text } };
}

export function noticed(text: string, ok?: boolean): NewEntry {
  return { author: "agent", kind: "notice", body: { text, ...(ok === undefined ? {} : { ok }) } };
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
  const path = asText(fields["path"]) ?? asText(fields["file_path"]) ?? asText(fields["workdir"]);
  const title =
    command ??
    asText(fields["message"]) ??
    asText(fields["task_name"]) ??
    asText(fields["query"]) ??
    asText(fields["path"]);
  const call = { callId, tool, input, command, path: command === null ? path : null, title };
  return { author: "agent", kind: "toolCall", body: callBody(call, textMax) };
}

function planEntry(fields: JsonObject): NewEntry {
  const plan = planBody(fields["plan"], ["step"]);
  const text = [asText(fields["explanation"]), plan.text].filter((part) => part).join("\n");
  return { author: "agent", kind: "plan", body: { ...plan, text } };
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

/** A text, a list of items, or (older versions) JSON in a text that contains the command's output. */
function readOutput(output: unknown, call: OpenCall | null): Output {
  const wrapped = asObject(output);
  const text = typeof output === "string" ? output : textOf(wrapped?.["content"] ?? output);
  const failed = wrapped?.["success"] === false;
  const inner = text.startsWith('{"output":') ? parsedObject(text) : null;
  const exitCode =
    call?.exitCode ?? asNumber(asObject(inner?.["metadata"])?.["exit_code"]) ?? exitCodeIn(text);
  return { text: asText(inner?.["output"]) ?? text, exitCode, failed };
}

/** Reads the lines that Codex puts before a command's output. */
function exitCodeIn(text: string): number | null {
  const end = text.indexOf("\nOutput:\n");
  if (end < 0 || end > 1000) return null;
  const code = /^(?:Exit code:|Process exited with code) (-?\d{1,6})$/mu.exec(text.slice(0, end))?.[1];
  return code === undefined ? null : Number(code);
}

/** Images and similar blocks become placeholders. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return asList(content)
    .flatMap((item) => {
      if (typeof item === "string") return item;
      const block = asObject(item);
      if (typeof block?.["text"] === "string") return block["text"];
      const type = asText(block?.["type"]);
      if (type === null) return [];
      if (type.includes("image")) return "[image]";
      return type === "encrypted_content" ? "[encrypted]" : [];
    })
    .join("\n");
}

/** Returns the part of an error that a person reads. Providers answer with JSON that contains the message. */
export function errorText(text: string): string {
  const fields = parsedObject(text);
  const inner = asText(asObject(fields?.["error"])?.["message"]) ?? asText(fields?.["message"]);
  return inner ?? text;
}
