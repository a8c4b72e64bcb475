import { callBody, type NewEntry, planBody, planned, pushEntry, resultBody } from "../../lines/entry-body.ts";
import type { Row } from "../../lines/json-lines.ts";
import { asNumber, asObject, asText, firstText, type JsonObject } from "../../lines/value.ts";
import type { ClaudeFold, Line, OpenCall } from "./notes.ts";
import { textOf } from "./user-row.ts";

export interface ParsedRow {
  readonly row: Row;
  readonly line: Line;
  readonly at: number | null;
  count: number;
}

/** Adds an entry of a row. The first entry's ref is the row's id; later entries add a number to it. */
export function addEntry(fold: ClaudeFold, parsed: ParsedRow, entry: NewEntry & { ref?: string }): void {
  const { row, line, at } = parsed;
  const own = asText(row.value["uuid"]) ?? `@${row.offset}`;
  const ref = entry.ref ?? (parsed.count === 0 ? own : `${own}#${parsed.count}`);
  parsed.count += 1;
  line.notes.lastRef = ref;
  pushEntry(fold, line.facts, { ...entry, ref, inlineId: line.inlineId, at });
}

/** A sub-agent is prompted by the session that started it. */
export function asker(line: Line): "person" | "session" {
  return line.facts.isSubagent ? "session" : "person";
}

export function callEntry(block: JsonObject, textMax: number): NewEntry {
  const tool = asText(block["name"]) ?? "a tool";
  const input = asObject(block["input"]) ?? {};
  const plan = asText(input["plan"]);
  if (tool === "TodoWrite") return planned(planBody(input["todos"], ["content"]));
  if (tool === "ExitPlanMode" && plan !== null) return planned({ text: plan });
  const command = asText(input["command"]);
  const path = firstText(input, "file_path", "notebook_path", "path");
  const title = asText(input["description"]) ?? command ?? path ?? firstText(input, "pattern", "query");
  const callId = asText(block["id"]) ?? "";
  const body = callBody({ callId, tool, input, command, path, title }, textMax);
  return { author: "agent", kind: "toolCall", body };
}

export function resultEntry(block: JsonObject, structured: unknown, call: OpenCall | null): NewEntry {
  const exitCode = asNumber(asObject(structured)?.["exitCode"]);
  const callId = asText(block["tool_use_id"]) ?? "";
  const result = { text: textOf(block["content"]), callId, ok: block["is_error"] !== true };
  const body = resultBody(result, call, exitCode);
  return { author: "tool", kind: "toolResult", body };
}
