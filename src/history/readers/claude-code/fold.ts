import { countTokens, noFacts, seenAt } from "../../facts.ts";
import { noticed, said, thought } from "../../lines/entry-body.ts";
import type { Row } from "../../lines/json-lines.ts";
import { promptKey, shortText, timeOf } from "../../lines/text.ts";
import {
  asCount,
  asList,
  asNumber,
  asObject,
  asText,
  type JsonObject,
  pushBounded,
} from "../../lines/value.ts";
import { movedOn } from "../../lines/spawn-call.ts";
import { called, progressed, returned } from "./calls.ts";
import { answered, asBefore, interrupted, prompted, resulted, stopHooksRan, turnEnded } from "./ending.ts";
import { addEntry, asker, callEntry, resultEntry, type ParsedRow } from "./entries.ts";
import { type ClaudeFold, inlineKey, type Line, type LineNotes, noNotes, type Step } from "./notes.ts";
import { foldAttachment, foldNotice, foldQueued } from "./notice-rows.ts";
import { addStep, addTurn, rewindBy } from "./rewind.ts";
import { commandText, INTERRUPTS, outputText, readUserRow, textOf, type UserRow } from "./user-row.ts";
import { shortLine } from "../../../text/fence.ts";

export function foldRow(fold: ClaudeFold, row: Row): void {
  const type = asText(row.value["type"]);
  if (type === null) throw new Error("it has no type");
  const outside = OUTSIDE_GRAPH.get(type);
  if (outside !== undefined) {
    outside(fold, row);
    return;
  }
  const id = asText(row.value["uuid"]);
  const foldKind = GRAPH.get(type);
  if (foldKind === undefined && id === null) return;
  const line = lineOf(fold, row.value);
  const parsed: ParsedRow = { row, line, at: timeOf(row.value["timestamp"]), count: 0 };
  envelope(parsed);
  // A row of an unknown type is remembered too, because it may be the parent of another row.
  const kind = foldKind?.(fold, parsed) ?? "other";
  if (id !== null) addStep(line.notes, stepOf(parsed, id, kind));
}

type Kind = Step["kind"];

/** The types of rows that form a graph: each such row has an id and the id of its parent row. */
const GRAPH = new Map(
  Object.entries<(fold: ClaudeFold, parsed: ParsedRow) => Kind>({
    user: foldUser,
    assistant: foldAnswer,
    system: foldSystem,
    attachment: foldAttachment,
    progress: foldProgress,
  }),
);

const OUTSIDE_GRAPH = new Map(
  Object.entries<(fold: ClaudeFold, row: Row) => void>({
    summary: ({ facts }, { value }) => {
      facts.title ??= shortText(value["summary"]);
    },
    "ai-title": ({ facts, notes }, { value }) => {
      if (notes.own.customTitle === null) facts.title = shortText(value["aiTitle"]) ?? facts.title;
    },
    "custom-title": ({ facts, notes }, { value }) => {
      notes.own.customTitle = shortText(value["customTitle"]);
      facts.title = notes.own.customTitle ?? facts.title;
    },
    "agent-name": ({ facts }, { value }) => {
      facts.name = shortText(value["agentName"]) ?? facts.name;
    },
    "cost-state": ({ facts }, { value }) => {
      facts.usage.usd = asNumber(value["totalCostUSD"]) ?? facts.usage.usd;
    },
    "queue-operation": foldQueued,
  }),
);

/** Returns whose row this is. Old versions wrote sub-agents' rows into the file of the starting session. */
function lineOf(fold: ClaudeFold, value: JsonObject): Line {
  const own: Line = { inlineId: null, facts: fold.facts, notes: fold.notes.own };
  if (value["isSidechain"] !== true || fold.found.isSubagent) return own;
  const id = inlineIdOf(fold, value);
  if (id === null) return own;
  fold.notes.inlineId = id;
  let facts = fold.inline.get(id);
  if (facts === undefined) {
    if (fold.inline.size >= INLINE_MAX) throw new Error(`more than ${INLINE_MAX} sub-agents in one file`);
    facts = { ...noFacts(id), isSubagent: true, rootId: fold.facts.id };
    fold.inline.set(id, facts);
  }
  return { inlineId: id, facts, notes: inlineNotes(fold.notes.inline, id) };
}

const INLINE_MAX = 1000;
/** Notes are kept for at most this many sidechains (sub-agents in this file). The oldest are dropped. */
const INLINE_NOTED_MAX = 64;

function inlineNotes(inline: ClaudeFold["notes"]["inline"], id: string): LineNotes {
  const notes = (inline[inlineKey(id)] ??= noNotes());
  const keys = Object.keys(inline);
  if (keys.length > INLINE_NOTED_MAX) delete inline[keys[0] as string];
  return notes;
}

/** Connected sidechain rows belong to one sub-agent. Its id is its agent id, or else its first row's id. */
function inlineIdOf(fold: ClaudeFold, value: JsonObject): string | null {
  const named = asText(value["agentId"]);
  if (named !== null) return named;
  const parentId = asText(value["parentUuid"]);
  if (parentId === null) return asText(value["uuid"]) ?? fold.notes.inlineId;
  for (const [key, { steps }] of Object.entries(fold.notes.inline)) {
    if (steps.some(({ id }) => id === parentId)) return key.slice(1);
  }
  return fold.notes.inlineId;
}

function envelope({ row: { value }, line: { facts }, at }: ParsedRow): void {
  facts.firstRef ??= asText(value["uuid"]);
  facts.cwd ??= asText(value["cwd"]);
  facts.gitBranch = asText(value["gitBranch"]) ?? facts.gitBranch;
  facts.agentVersion = asText(value["version"]) ?? facts.agentVersion;
  if (facts.isSubagent) facts.rootId ??= asText(value["sessionId"]);
  facts.createdAt ??= at;
  seenAt(facts, at);
}

function stepOf({ row: { value, offset }, at }: ParsedRow, id: string, kind: Kind): Omit<Step, "ref"> {
  return { id, kind, at, messageId: asText(asObject(value["message"])?.["id"]), offset };
}

function foldUser(fold: ClaudeFold, parsed: ParsedRow): Kind {
  const user = readUserRow(parsed.row.value);
  const { line } = parsed;
  switch (user.kind) {
    case "prompt":
      foldPrompt(fold, parsed, user.text);
      return "prompt";
    case "results":
      foldResults(fold, parsed, user);
      return "result";
    case "notice":
      foldNotice(fold, parsed, user);
      return "prompt";
    case "interrupt":
      addEntry(fold, parsed, noticed(user.text.trim()));
      interrupted(line, parsed.at);
      return "other";
    case "command":
      line.notes.before = line.facts.ending;
      addEntry(fold, parsed, said(asker(line), commandText(user.text)));
      prompted(line, parsed.at);
      return "prompt";
    case "output":
      foldOutput(fold, parsed, user.text);
      return "other";
    default:
      if (user.text.trim() !== "") addEntry(fold, parsed, noticed(user.text));
      return "other";
  }
}

function foldPrompt(fold: ClaudeFold, parsed: ParsedRow, text: string): void {
  const { line, at, row } = parsed;
  const { facts } = line;
  const id = asText(row.value["uuid"]);
  const parentId = asText(row.value["parentUuid"]);
  if (id !== null) {
    // A sub-agent is never rewound. A second prompt without a parent row means that it was prompted again.
    const isNoRewind = parentId === null && line.facts.isSubagent;
    const behind = isNoRewind ? null : rewindBy(line.notes, stepOf(parsed, id, "prompt"), parentId);
    if (behind !== null) {
      const { range, ...left } = behind;
      fold.leftBehind.push({ ...left, inlineId: line.inlineId });
      pushBounded((facts.leftRanges ??= []), range, LEFT_RANGES_MAX);
    }
    addTurn(line.notes, { id, offset: row.offset }, parentId);
  }
  const isFromTeam = text.startsWith("<teammate-message");
  addEntry(fold, parsed, said(isFromTeam ? "session" : asker(line), text));
  facts.firstPrompt ??= shortLine(text, 200);
  facts.promptKey ??= promptKey(text);
  facts.promptedAt = at ?? facts.promptedAt;
  facts.messageCount += 1;
  movedOn(line);
  prompted(line, at);
}

/** No person rewinds one session this often. The limit keeps a hostile file from filling the memory. */
const LEFT_RANGES_MAX = 200;

function foldResults(fold: ClaudeFold, parsed: ParsedRow, user: UserRow): void {
  const { line, at, row } = parsed;
  const structured = user.results.length === 1 ? row.value["toolUseResult"] : undefined;
  const text = user.text.trim();
  const isInterrupted = INTERRUPTS.has(text);
  let error: string | null = null;
  for (const block of user.results) {
    const callId = asText(block["tool_use_id"]);
    const call = line.notes.open.find(({ id }) => id === callId) ?? null;
    line.notes.open = line.notes.open.filter(({ id }) => id !== callId);
    addEntry(fold, parsed, resultEntry(block, structured, call));
    returned(line, { block, structured, isInterrupted, at });
    error = block["is_error"] === true ? textOf(block["content"]) || "the call failed" : null;
  }
  if (text !== "") addEntry(fold, parsed, noticed(text));
  if (isInterrupted) interrupted(line, at);
  else resulted(line, { error, at });
}

function foldAnswer(fold: ClaudeFold, parsed: ParsedRow): Kind {
  const { row, line, at } = parsed;
  const message = asObject(row.value["message"]);
  if (message === null) throw new Error("an answer without a message");
  const blocks =
    typeof message["content"] === "string"
      ? [{ type: "text", text: message["content"] }]
      : asList(message["content"]);
  if (message["model"] === "<synthetic>" && isNoAnswer(row.value, blocks)) return "other";
  countAnswer(line, message);
  let text = "";
  for (const block of blocks.map(asObject)) {
    if (block === null) continue;
    text ||= asText(block["text"]) ?? "";
    foldBlock(fold, parsed, block);
  }
  answered(line, { ...row.value, message }, { text, at });
  return "answer";
}

/** Claude Code writes "No response requested." when a session is reopened without a prompt. */
function isNoAnswer(value: JsonObject, blocks: readonly unknown[]): boolean {
  return value["isApiErrorMessage"] !== true && textOf(blocks).trim() === "No response requested.";
}

/** Whether Claude Code itself wrote the row in place of a model's answer, usually for an error. */
function isProgramsOwn(value: JsonObject): boolean {
  return value["isApiErrorMessage"] === true || asObject(value["message"])?.["model"] === "<synthetic>";
}

function foldBlock(fold: ClaudeFold, parsed: ParsedRow, block: JsonObject): void {
  const { line, at, row } = parsed;
  const [text, thinking] = [asText(block["text"]), asText(block["thinking"])];
  switch (block["type"]) {
    case "text":
      if (text !== null)
        addEntry(fold, parsed, isProgramsOwn(row.value) ? noticed(text, false) : said("agent", text));
      return;
    case "thinking":
      if (thinking !== null) addEntry(fold, parsed, thought(thinking));
      return;
    case "tool_use": {
      line.facts.toolUseCount += 1;
      const id = asText(block["id"]);
      const command = shortText(asObject(block["input"])?.["command"], 2000);
      const tool = asText(block["name"]) ?? "a tool";
      if (id !== null) pushBounded(line.notes.open, { id, tool, command }, OPEN_MAX);
      called(line, block, at);
      addEntry(fold, parsed, callEntry(block, fold.textMax));
      return;
    }
    default:
      return;
  }
}

const OPEN_MAX = 256;

/** One answer consists of several rows with the same id. Each repeats the usage of the whole answer. */
function countAnswer(line: Line, message: JsonObject): void {
  const { facts, notes } = line;
  const model = asText(message["model"]);
  if (model !== null && model !== "<synthetic>") facts.model = model;
  const id = asText(message["id"]);
  if (id === null || id !== notes.messageId) {
    facts.messageCount += 1;
    movedOn(line);
  }
  notes.messageId = id;
  const usage = asObject(message["usage"]);
  if (usage === null) return;
  const now = {
    id: id ?? "",
    inputTokens: asCount(usage["input_tokens"]) + asCount(usage["cache_creation_input_tokens"]),
    cachedTokens: asCount(usage["cache_read_input_tokens"]),
    outputTokens: asCount(usage["output_tokens"]),
  };
  const before = id === null ? undefined : notes.recent.find((other) => other.id === id);
  countTokens(facts, now, before);
  notes.recent = notes.recent.filter((other) => other !== before);
  pushBounded(notes.recent, now, 4);
}

function foldSystem(fold: ClaudeFold, parsed: ParsedRow): Kind {
  const { row, line, at } = parsed;
  const subtype = asText(row.value["subtype"]) ?? "";
  const text = asText(row.value["content"]) ?? asText(row.value["summary"]);
  switch (subtype) {
    case "turn_duration":
      turnEnded(line, "turn_duration", at);
      line.facts.backgroundCount =
        asCount(row.value["pendingBackgroundAgentCount"]) + asCount(row.value["pendingWorkflowCount"]);
      return "other";
    case "stop_hook_summary":
      stopHooksRan(line, at);
      return "other";
    case "api_error": {
      const error = asObject(row.value["error"]);
      const message = text ?? asText(error?.["message"]) ?? asText(row.value["error"]) ?? "the API failed";
      addEntry(fold, parsed, noticed(message, false));
      return "lateError";
    }
    case "local_command":
      // Newer versions write a command's output, and sometimes the command itself, as a row of this type.
      if (text !== null) foldOutput(fold, parsed, text);
      return "other";
    case "compact_boundary":
    case "away_summary":
    case "informational":
    case "model_refusal_fallback":
      if (text !== null) addEntry(fold, parsed, noticed(text));
      return "other";
    default:
      return "other";
  }
}

/** Adds the output of a command run without the model, and restores the ending from before the command. */
function foldOutput(fold: ClaudeFold, parsed: ParsedRow, text: string): void {
  addEntry(fold, parsed, noticed(outputText(text)));
  asBefore(parsed.line);
}

/** Older versions write a sub-agent's progress into its parent's file. */
function foldProgress(_fold: ClaudeFold, { row, line, at }: ParsedRow): Kind {
  const data = asObject(row.value["data"]);
  if (data?.["type"] !== "agent_progress") return "other";
  const callId = asText(row.value["parentToolUseID"]) ?? asText(row.value["toolUseID"]);
  progressed(line, { callId, agentId: asText(data["agentId"]), at });
  return "other";
}
