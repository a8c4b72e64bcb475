import type { HistoryEntry } from "../../port.ts";
import { callBody, planBody } from "../../lines/entry-body.ts";
import { cut } from "../../lines/text.ts";
import { asObject, asText, type JsonObject } from "../../lines/value.ts";
import { type GeminiFold, markOf } from "./notes.ts";

type NewEntry = Pick<HistoryEntry, "ref" | "author" | "kind" | "body"> & { readonly at: number | null };

export function addEntry(fold: GeminiFold, entry: NewEntry): void {
  fold.notes.lastRef = entry.ref;
  push(fold, entry);
}

/** Gives an entry again, because the agent rewrote its text. */
export function replaceEntry(fold: GeminiFold, entry: NewEntry): void {
  push(fold, { ...entry, ref: `${entry.ref}~${markOf(entry.body.text)}`, replaces: entry.ref });
}

function push(fold: GeminiFold, entry: NewEntry & Pick<HistoryEntry, "replaces">): void {
  const { facts } = fold;
  fold.entries.push({
    ...entry,
    inlineId: null,
    body: { ...entry.body, text: cut(entry.body.text, fold.textMax) },
    isSubagent: facts.isSubagent,
    at: entry.at ?? facts.lastAt ?? facts.createdAt ?? 0,
  });
}

/** Refs of calls and results are made from the call's id, because several messages may carry one call. */
export function callRef(callId: string): string {
  return `call:${callId}`;
}

export function resultRef(callId: string): string {
  return `result:${callId}`;
}

export function callOf(call: JsonObject, textMax: number): Pick<HistoryEntry, "kind" | "body"> {
  const tool = asText(call["name"]) ?? "a tool";
  const input = asObject(call["args"]) ?? {};
  if (tool === "write_todos") {
    return { kind: "plan", body: planBody(input["todos"], ["description", "content"]) };
  }
  const command = tool === "run_shell_command" ? asText(input["command"]) : null;
  const path = asText(input["file_path"]) ?? asText(input["absolute_path"]) ?? asText(input["dir_path"]);
  const title =
    asText(input["description"]) ?? command ?? path ?? asText(input["pattern"]) ?? asText(input["query"]);
  const callId = asText(call["id"]) ?? "";
  return { kind: "toolCall", body: callBody({ callId, tool, input, command, path, title }, textMax) };
}
