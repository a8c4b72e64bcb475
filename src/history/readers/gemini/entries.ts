import { callBody, type NewEntry, planBody, pushEntry } from "../../lines/entry-body.ts";
import type { HistoryEntry } from "../../port.ts";
import { asObject, asText, firstText, type JsonObject } from "../../lines/value.ts";
import { type GeminiFold, markOf } from "./notes.ts";

type Entry = NewEntry & { readonly ref: string; readonly at: number | null };

export function addEntry(fold: GeminiFold, entry: Entry): void {
  fold.notes.lastRef = entry.ref;
  pushEntry(fold, fold.facts, entry);
}

/** Adds a new version of an entry, because the agent rewrote its text. */
export function replaceEntry(fold: GeminiFold, entry: Entry): void {
  const ref = `${entry.ref}~${markOf(entry.body.text)}`;
  pushEntry(fold, fold.facts, { ...entry, ref, replaces: entry.ref });
}

export function callOf(call: JsonObject, textMax: number): Pick<HistoryEntry, "kind" | "body"> {
  const tool = asText(call["name"]) ?? "a tool";
  const input = asObject(call["args"]) ?? {};
  if (tool === "write_todos") {
    return { kind: "plan", body: planBody(input["todos"], ["description", "content"]) };
  }
  const command = tool === "run_shell_command" ? asText(input["command"]) : null;
  const path = firstText(input, "file_path", "absolute_path", "dir_path");
  const title = asText(input["description"]) ?? command ?? path ?? firstText(input, "pattern", "query");
  const callId = asText(call["id"]) ?? "";
  return { kind: "toolCall", body: callBody({ callId, tool, input, command, path, title }, textMax) };
}
