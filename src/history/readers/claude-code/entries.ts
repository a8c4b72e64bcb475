import type { HistoryEntry } from "../../port.ts";
import type { JsonObject, Row } from "../../lines/json-lines.ts";
import { callBody, planBody, resultBody } from "../../lines/entry-body.ts";
import { cut } from "../../lines/text.ts";
import { asNumber, asObject, asText } from "../../lines/value.ts";
import type { ClaudeFold, Line, OpenCall } from "./notes.ts";
import { textOf } from "./user-row.ts";

type NewEntry = Pick<HistoryEntry, "author" | "kind" | "body"> & { readonly ref?: string };

export interface ParsedRow {
  readonly row: Row;
  readonly line: Line;
  readonly at: number | null;
  count: number;
}

/** A row's first entry has the row's id as its ref. */
export function addEntry(fold: ClaudeFold, parsed: ParsedRow, entry: NewEntry): void {
  const { row, line } = parsed;
  const own = asText(row.value["uuid"]) ?? `@${row.offset}`;
  const ref = entry.ref ?? (parsed.count === 0 ? own : `${own}#${parsed.count}`);
  parsed.count += 1;
  line.notes.lastRef = ref;
  fold.entries.push({
    ref,
    inlineId: line.inlineId,
    author: entry.author,
    kind: entry.kind,
    body: { ...entry.body, text: cut(entry.body.text, fold.textMax) },
    isSubagent: line.facts.isSubagent,
    at: parsed.at ?? line.facts.lastAt ?? line.facts.createdAt ?? 0,
  });
}

/** A sub-agent is prompted by the session that started it. */
export function asker(line: Line): "person" | "session" {
  return line.facts.isSubagent ? "session" : "person";
}

export function callEntry(block: JsonObject, textMax: number): NewEntry {
  const tool = asText(block["name"]) ?? "a tool";
  const input = asObject(block["input"]) ?? {};
  if (tool === "TodoWrite")
    return { author: "agent", kind: "plan", body: planBody(input["todos"], ["content"]) };
  if (tool === "ExitPlanMode" && asText(input["plan"]) !== null) {
    return { author: "agent", kind: "plan", body: { text: asText(input["plan"]) as string } };
  }
  const command = commandOf(input);
  const path = asText(input["file_path"]) ?? asText(input["notebook_path"]) ?? asText(input["path"]);
  const title =
    asText(input["description"]) ?? command ?? path ?? asText(input["pattern"]) ?? asText(input["query"]);
  const callId = asText(block["id"]) ?? "";
  const body = callBody({ callId, tool, input, command, path, title }, textMax);
  return { author: "agent", kind: "toolCall", body };
}

export function commandOf(input: JsonObject): string | null {
  return asText(input["command"]);
}

export function resultEntry(block: JsonObject, structured: unknown, call: OpenCall | null): NewEntry {
  const exitCode = asNumber(asObject(structured)?.["exitCode"]);
  const callId = asText(block["tool_use_id"]) ?? "";
  const result = { text: textOf(block["content"]), callId, ok: block["is_error"] !== true };
  const body = resultBody(result, call, exitCode);
  return { author: "tool", kind: "toolResult", body };
}

export function said(author: HistoryEntry["author"], text: string): NewEntry {
  return { author, kind: "text", body: { text } };
}

export function noticed(text: string): NewEntry {
  return { author: "agent", kind: "notice", body: { text } };
}
