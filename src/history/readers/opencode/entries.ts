import {
  callBody,
  type NewEntry,
  noticed,
  planBody,
  planned,
  reported,
  resultBody,
  said,
  thought,
} from "../../lines/entry-body.ts";
import type { HistoryEntry } from "../../port.ts";
import { cut, timeOf } from "../../lines/text.ts";
import { asNumber, asObject, asText, firstText, type JsonObject } from "../../lines/value.ts";
import { type Message, type Part, timesOf } from "./source.ts";
import { readTaskTag } from "./task-tag.ts";

export interface Drawn {
  readonly entry: HistoryEntry;
  readonly isFinal: boolean;
}

export interface Drawing {
  readonly isSubagent: boolean;
  readonly textMax: number;
  /** The agent will not write to this message any more. */
  readonly isClosed: boolean;
}

/**
 * Returns a message's entries. Texts and calls are in the order of the message's parts. Each result comes
 * before the first part that began after the result. So the order does not change while the message grows.
 */
export function entriesOf(message: Message, drawing: Drawing): Drawn[] {
  const parts: Placed[] = [];
  const results: Placed[] = [];
  for (const part of message.parts) {
    const at = part.createdAt;
    const drawn = drawPart(message, part, drawing);
    if (drawn !== null) parts.push({ ...drawn, from: at ?? 0 });
    const result = drawResult(part, drawing);
    if (result !== null) results.push({ ...result, from: result.entry.at });
  }
  results.sort((a, b) => a.from - b.from);
  const ordered: Drawn[] = [];
  const called = new Set<string>();
  for (const item of parts) {
    while (results.length > 0 && (results[0] as Placed).from < item.from && called.has(callOf(results[0]))) {
      ordered.push(results.shift() as Placed);
    }
    ordered.push(item);
    called.add(callOf(item));
  }
  const error = drawError(message, drawing);
  return [...ordered, ...results, ...(error === null ? [] : [error])].map(({ entry, isFinal }) => ({
    entry,
    isFinal,
  }));
}

interface Placed extends Drawn {
  readonly from: number;
}

/** Returns the ref of a call, given the entry of the call or of its result. */
function callOf(placed: Placed | undefined): string {
  return placed?.entry.ref.replace(RESULT, "") ?? "";
}

const RESULT = "#result";

function drawPart(message: Message, part: Part, drawing: Drawing): Drawn | null {
  const isUser = message.data["role"] === "user";
  const isFinal = drawing.isClosed || isUser || isOver(message) || isPartDone(part);
  // An unfinished text may still be empty. It gets an entry that is not final, so that the entries after it
  // are held back.
  const made =
    (isUser ? saidByUser : saidByAgent)({ message, part, drawing }) ?? (isFinal ? null : noticed(""));
  if (made === null) return null;
  const at = (isUser ? null : timeIn(part)) ?? createdAt(message);
  return { entry: finished(made, { ref: part.id, at, drawing }), isFinal };
}

interface Sayer {
  readonly message: Message;
  readonly part: Part;
  readonly drawing: Drawing;
}

function finished(
  { author, kind, body }: NewEntry,
  { ref, at, drawing }: { ref: string; at: number; drawing: Drawing },
): HistoryEntry {
  const cutBody = { ...body, text: cut(body.text, drawing.textMax) };
  return { ref, inlineId: null, author, kind, body: cutBody, isSubagent: drawing.isSubagent, at };
}

/** A message with the role `user` also contains files, reminders and results that no user wrote. */
function saidByUser({ part: { data }, drawing: { isSubagent } }: Sayer): NewEntry | null {
  const author = isSubagent ? "session" : "person";
  const text = asText(data["text"]);
  switch (data["type"]) {
    case "text":
      if (text === null) return null;
      if (data["synthetic"] !== true) return said(author, text);
      return readTaskTag(text) === null ? noticed(text) : reported(text);
    case "subtask":
      return said(author, firstText(data, "prompt", "description") ?? "");
    case "file":
      return said(author, `[${fileName(data)}]`);
    case "compaction":
      return noticed("The conversation is compacted.");
    default:
      return null;
  }
}

function fileName(data: JsonObject): string {
  const url = asText(data["url"]);
  return (
    asText(data["filename"]) ??
    (url === null || url.startsWith("data:") ? (asText(data["mime"]) ?? "a file") : url)
  );
}

function saidByAgent({ message, part: { data }, drawing: { textMax } }: Sayer): NewEntry | null {
  const text = asText(data["text"]);
  switch (data["type"]) {
    case "text":
      if (text === null) return null;
      if (message.data["summary"] === true || data["synthetic"] === true) return noticed(text);
      return said("agent", text);
    case "reasoning":
      return text === null ? null : thought(text);
    case "tool":
      return called(data, textMax);
    case "retry":
      return noticed(messageIn(asObject(data["error"])) ?? "The request is made again.", false);
    default:
      return null;
  }
}

function messageIn(error: JsonObject | null): string | null {
  return asText(asObject(error?.["data"])?.["message"]) ?? asText(error?.["message"]);
}

/** Uses only the call's input, so that the entry is the same before and after the call ran. */
function called(data: JsonObject, textMax: number): NewEntry {
  const tool = asText(data["tool"]) ?? "a tool";
  const input = asObject(asObject(data["state"])?.["input"]) ?? {};
  if (tool === "todowrite") return planned(planBody(input["todos"], ["content"]));
  const command = tool === "bash" ? asText(input["command"]) : null;
  const path = firstText(input, "filePath", "path");
  const title =
    asText(input["description"]) ?? command ?? path ?? firstText(input, "pattern", "query", "url");
  const callId = asText(data["callID"]) ?? "";
  const body = callBody({ callId, tool, input, command, path, title }, textMax);
  return { author: "agent", kind: "toolCall", body };
}

function drawResult(part: Part, drawing: Drawing): Drawn | null {
  const { data } = part;
  const state = asObject(data["state"]);
  const status = state?.["status"];
  if (data["type"] !== "tool" || state === null || (status !== "completed" && status !== "error"))
    return null;
  const exitCode = asNumber(asObject(state["metadata"])?.["exit"]);
  const command = data["tool"] === "bash" ? asText(asObject(state["input"])?.["command"]) : null;
  const isOk = status === "completed";
  const text = asText(isOk ? state["output"] : state["error"]) ?? "";
  const call = {
    tool: asText(data["tool"]) ?? "a tool",
    command: command === null ? null : cut(command, drawing.textMax),
  };
  const body = resultBody({ text, callId: asText(data["callID"]) ?? "", ok: isOk }, call, exitCode);
  const at = timeOf(asObject(state["time"])?.["end"]) ?? timeIn(part) ?? 0;
  const entry = finished(
    { author: "tool", kind: "toolResult", body },
    { ref: `${part.id}${RESULT}`, at, drawing },
  );
  return { entry, isFinal: true };
}

function drawError(message: Message, drawing: Drawing): Drawn | null {
  const error = errorOf(message);
  if (error === null) return null;
  const at = completedAt(message) ?? createdAt(message);
  return {
    entry: finished(noticed(error.text, false), { ref: `${message.id}#error`, at, drawing }),
    isFinal: true,
  };
}

export function errorOf({ data }: Message): { readonly name: string; readonly text: string } | null {
  const error = asObject(data["error"]);
  if (error === null) return null;
  const name = asText(error["name"]) ?? "an error";
  return { name, text: messageIn(error) ?? name };
}

export function createdAt({ data }: Message): number {
  return timeOf(asObject(data["time"])?.["created"]) ?? 0;
}

export function completedAt({ data }: Message): number | null {
  return timeOf(asObject(data["time"])?.["completed"]);
}

/** Whether the agent has recorded that it is done with a message. */
function isOver(message: Message): boolean {
  return completedAt(message) !== null || errorOf(message) !== null;
}

/** A text is complete when it has an end time; a call's input is complete when the call runs. */
function isPartDone({ data }: Part): boolean {
  if (data["type"] === "tool") {
    const status = asObject(data["state"])?.["status"];
    return status === "running" || status === "completed" || status === "error";
  }
  if (data["type"] !== "text" && data["type"] !== "reasoning") return true;
  return timeOf(asObject(data["time"])?.["end"]) !== null;
}

function timeIn({ data, createdAt: at }: Part): number | null {
  return timeOf(timesOf(data)?.["start"]) ?? at;
}
