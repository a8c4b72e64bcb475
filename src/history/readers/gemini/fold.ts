import type { Row } from "../../lines/json-lines.ts";
import { countTokens, seenAt, type Tokens } from "../../facts.ts";
import { noticed, said, thought } from "../../lines/entry-body.ts";
import { promptKey, shortText, timeOf } from "../../lines/text.ts";
import { asCount, asList, asObject, asText, type JsonObject } from "../../lines/value.ts";
import { giveCall, giveResult, foldToolCall } from "./calls.ts";
import { readContent, responseText } from "./content.ts";
import { answered, cancelled, errored, prompted, resulted, returnedTo, takenBack } from "./ending.ts";
import { addEntry, replaceEntry } from "./entries.ts";
import { addStep, type GeminiFold, markOf, type Step } from "./notes.ts";
import { shortLine } from "../../../text/fence.ts";

/** A row is a message, a patch of the session's fields, a rewind, or the head. */
export function foldRow(fold: GeminiFold, { value, offset }: Row): void {
  const rewindTo = value["$rewindTo"];
  if (typeof rewindTo === "string") {
    rewind(fold, rewindTo);
  } else if (typeof value["id"] === "string") {
    foldMessage(fold, value, { isSynthetic: false, offset });
  } else {
    const patch = asObject(value["$set"]) ?? (HEAD_FIELDS.some((name) => name in value) ? value : null);
    if (patch === null) throw new Error("it is neither a message nor session data");
    foldPatch(fold, patch, offset);
  }
}

const HEAD_FIELDS = ["sessionId", "projectHash", "lastUpdated", "startTime", "summary", "kind"];

function foldPatch(fold: GeminiFold, patch: JsonObject, offset: number): void {
  const { facts, notes } = fold;
  facts.createdAt ??= timeOf(patch["startTime"]);
  seenAt(facts, timeOf(patch["lastUpdated"]));
  if (patch["kind"] === "subagent") facts.isSubagent = true;
  notes.projectHash ??= asText(patch["projectHash"]);
  facts.title = shortText(patch["summary"]) ?? facts.title;
  // A sub-agent's list begins with its working folder. A root session's list has only added folders.
  if (facts.isSubagent) facts.cwd ??= asText(asList(patch["directories"])[0]);
  if (Array.isArray(patch["messages"])) snapshot(fold, patch["messages"], offset);
}

/**
 * Folds a list of the messages that the model gets from now on. Messages read earlier that come after the
 * last listed one were taken back. Other messages read earlier that are not listed stay in the transcript:
 * they were only reworded for the model (compression) or moved into another message (calls). New messages in
 * the list were written by Gemini CLI itself.
 */
function snapshot(fold: GeminiFold, list: readonly unknown[], offset: number): void {
  const { notes } = fold;
  const messages = list.map(asObject).filter((message) => message !== null);
  const ids = new Set(messages.map((message) => asText(message["id"])));
  const known = new Set(notes.steps.map(({ id }) => id));
  const kept = notes.steps.findLastIndex(({ id }) => ids.has(id));
  if (kept >= 0) leaveBehind(fold, kept + 1, { reason: "the agent took them back" });
  const isFirst = known.size === 0;
  const first = messages.findIndex((message) => known.has(asText(message["id"]) ?? ""));
  const firstKnown = first < 0 && isFirst ? messages.length : first;
  for (const [index, message] of messages.entries()) {
    const id = asText(message["id"]);
    const isOld = notes.isCut && index < firstKnown;
    if (id === null || isOld) continue;
    if (known.has(id)) foldParts(fold, message);
    else foldMessage(fold, message, { isSynthetic: !isFirst, offset });
  }
}

/** In a snapshot an answer also contains its calls, which may be recorded nowhere else. */
function foldParts(fold: GeminiFold, message: JsonObject): void {
  const at = timeOf(message["timestamp"]);
  const { calls, responses } = readContent(message["content"]);
  for (const call of calls) giveCall(fold, call, at);
  for (const response of responses) foldResponse(fold, response, at);
}

function rewind(fold: GeminiFold, id: string): void {
  const { notes } = fold;
  const at = notes.steps.findIndex((step) => step.id === id);
  // If a rewind names an unknown message, Gemini CLI drops all messages.
  leaveBehind(fold, Math.max(0, at), { reason: "the agent was taken back to before them", isAll: at < 0 });
  returnedTo(fold, notes.steps.at(-1) ?? null);
}

function leaveBehind(
  fold: GeminiFold,
  from: number,
  { reason, isAll = false }: { reason: string; isAll?: boolean },
): void {
  const { notes } = fold;
  const gone = notes.steps.slice(from);
  if (!gone.some(({ kind }) => kind !== "other")) return;
  notes.steps.length = from;
  if (isAll) notes.isCut = false;
  const afterRef = isAll ? null : (notes.steps.at(-1)?.ref ?? null);
  fold.leftBehind.push({ inlineId: null, afterRef, beforeRef: null, reason });
  takenBack(fold, notes.steps.at(-1) ?? null);
}

interface Carrier {
  /** The message came with a snapshot; no person or model wrote it. */
  readonly isSynthetic: boolean;
  readonly offset: number;
}

function foldMessage(fold: GeminiFold, message: JsonObject, carrier: Carrier): void {
  const id = message["id"] as string;
  if (id === "") throw new Error("a message without an id");
  const at = timeOf(message["timestamp"]);
  const known = fold.notes.steps.findLast((step) => step.id === id);
  if (known === undefined) {
    fold.facts.firstRef ??= id;
    fold.facts.createdAt ??= at;
  }
  seenAt(fold.facts, at);
  const step = known ?? newStep(id, at, carrier.offset);
  const from = fold.entries.length;
  switch (message["type"]) {
    case "user":
      foldUser(fold, message, { step, carrier });
      break;
    case "gemini":
      foldAnswer(fold, message, step);
      break;
    default:
      foldNotice(fold, message, step);
  }
  const isLast = known === undefined || known === fold.notes.steps.at(-1);
  const isChanged = fold.entries.slice(from).some(({ replaces }) => replaces !== undefined);
  if (known !== undefined && (isLast || isChanged)) fold.heldFrom = known.offset;
  if (!isLast) return;
  step.ref = fold.notes.lastRef;
  step.ending = fold.facts.ending.kind;
  if (known === undefined) addStep(fold.notes, step);
}

function newStep(id: string, at: number | null, offset: number): Step {
  const tokens = { inputTokens: 0, cachedTokens: 0, outputTokens: 0 };
  return { id, ref: null, kind: "other", ending: "empty", at, offset, text: null, thoughts: [], tokens };
}

function foldUser(
  fold: GeminiFold,
  message: JsonObject,
  { step, carrier }: { step: Step; carrier: Carrier },
): void {
  const { facts } = fold;
  const { text, responses } = readContent(message["content"]);
  for (const response of responses) foldResponse(fold, response, step.at);
  if (responses.length > 0) resulted(fold, null, step.at);
  const shown = asText(readContent(message["displayContent"]).text) ?? text;
  const give = giverOf(step, shown);
  if (give === null) return;
  const isContext = text.startsWith("<session_context>");
  if (isContext) fold.notes.saidFolder ??= folderIn(text);
  if (isContext || carrier.isSynthetic || responses.length > 0) {
    give(fold, { ...noticed(shown), ref: step.id, at: step.at });
    return;
  }
  give(fold, { ...said(facts.isSubagent ? "session" : "person", shown), ref: step.id, at: step.at });
  facts.firstPrompt ??= shortLine(shown, 200);
  facts.promptKey ??= promptKey(text);
  facts.promptedAt = step.at ?? facts.promptedAt;
  if (step.kind === "prompt") return;
  facts.messageCount += 1;
  step.kind = "prompt";
  prompted(fold, step.at);
}

/** Returns `addEntry` for a new text, `replaceEntry` for a changed one, null if empty or unchanged. */
function giverOf(step: Step, text: string): typeof addEntry | null {
  const mark = markOf(text);
  const before = step.text;
  if (text.trim() === "") step.text ??= "";
  if (text.trim() === "" || mark === before) return null;
  step.text = mark;
  return before === null || before === "" ? addEntry : replaceEntry;
}

function foldResponse(fold: GeminiFold, response: JsonObject, at: number | null): void {
  const isError = asText(asObject(response["response"])?.["error"]) !== null;
  const text = responseText({ functionResponse: response });
  giveResult(fold, { call: response, text, ok: !isError, at });
}

/** Returns the first workspace folder in the context that Gemini CLI sends to its model. */
function folderIn(context: string): string | null {
  return /\*\*Workspace Directories:\*\*\s*\n\s*- (\S[^\n]{0,4000})/u.exec(context)?.[1]?.trim() ?? null;
}

function foldAnswer(fold: GeminiFold, message: JsonObject, step: Step): void {
  const { facts } = fold;
  const isNew = step.text === null;
  facts.model = asText(message["model"]) ?? facts.model;
  const tokens = tokensOf(message["tokens"]);
  countTokens(facts, tokens, step.tokens);
  if (tokens.inputTokens + tokens.cachedTokens + tokens.outputTokens > 0) step.tokens = tokens;
  foldThoughts(fold, asList(message["thoughts"]), step);
  const { text, calls } = readContent(message["content"]);
  const give = giverOf(step, text);
  if (give !== null) {
    give(fold, { ...said("agent", text), ref: step.id, at: step.at });
    if (step.kind !== "answer") facts.messageCount += 1;
    step.kind = "answer";
  }
  for (const call of calls) giveCall(fold, call, step.at);
  const recorded = asList(message["toolCalls"])
    .map(asObject)
    .flatMap((call) => (call === null ? [] : (foldToolCall(fold, call, step.at) ?? [])));
  const hasNews = recorded.some(({ isNews }) => isNews);
  if (recorded.length > 0 && (isNew || hasNews)) resulted(fold, recorded, step.at);
  else if (isNew || (give !== null && isLastSaid(fold, step)))
    answered(fold, { text, hasCalls: calls.length > 0, at: step.at });
}

/** Whether this is the last message. The session's ending (`facts.ending`) is derived from that message. */
function isLastSaid({ notes }: GeminiFold, step: Step): boolean {
  const last = notes.steps.findLast(({ kind }) => kind !== "other");
  return last === undefined || last === step || !notes.steps.includes(step);
}

function foldThoughts(fold: GeminiFold, thoughts: readonly unknown[], step: Step): void {
  for (const [index, item] of thoughts.entries()) {
    const fields = asObject(item);
    const text = [asText(fields?.["subject"]), asText(fields?.["description"])]
      .filter((part) => part !== null)
      .join("\n");
    const mark = text === "" ? "" : markOf(text);
    const before = step.thoughts[index] ?? "";
    if (text === "" || mark === before) {
      step.thoughts[index] = before;
      continue;
    }
    step.thoughts[index] = mark;
    const at = timeOf(fields?.["timestamp"]) ?? step.at;
    const give = before === "" ? addEntry : replaceEntry;
    give(fold, { ...thought(text), ref: `${step.id}#${index}`, at });
  }
}

function tokensOf(value: unknown): Tokens {
  const tokens = asObject(value) ?? {};
  const cached = asCount(tokens["cached"]);
  return {
    inputTokens: Math.max(0, asCount(tokens["input"]) - cached) + asCount(tokens["tool"]),
    cachedTokens: cached,
    outputTokens: asCount(tokens["output"]) + asCount(tokens["thoughts"]),
  };
}

/** Adds a message that Gemini CLI itself wrote: `info`, `warning` or `error`. */
function foldNotice(fold: GeminiFold, message: JsonObject, step: Step): void {
  const { text } = readContent(message["content"]);
  const give = giverOf(step, text);
  if (give === null) return;
  const isError = message["type"] === "error";
  give(fold, { ...noticed(text, isError ? false : undefined), ref: step.id, at: step.at });
  if (isError) errored(fold, text, step.at);
  else if (text.trim() === "Request cancelled.") cancelled(fold, step.at);
}
