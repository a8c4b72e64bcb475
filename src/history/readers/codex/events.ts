import { shortText, timeOf } from "../../lines/text.ts";
import { asCount, asList, asNumber, asObject, asText, type JsonObject } from "../../lines/value.ts";
import { noticed, planned } from "../../lines/entry-body.ts";
import { movedOn } from "../../lines/spawn-call.ts";
import { foldStates, linked, report } from "./calls.ts";
import { failed, isOfTurn, turnAborted, turnBegan, turnEnded } from "./ending.ts";
import { addEntry, errorText, type ParsedRow, textOf } from "./entries.ts";
import type { CodexFold } from "./notes.ts";
import { settle, foldPromptEvent } from "./prompts.ts";
import { foldTokenCount } from "./usage.ts";
import { shortLine } from "../../../text/fence.ts";

type Take = (fold: CodexFold, parsed: ParsedRow) => void;

/** Adds one event to the session's facts and entries. Skips events that only repeat the text of an item. */
export function foldEvent(fold: CodexFold, parsed: ParsedRow): void {
  EVENTS.get(asText(parsed.payload["type"]) ?? "")?.(fold, parsed);
}

const EVENTS = new Map(
  Object.entries<Take>({
    task_started: foldBeginning,
    turn_started: foldBeginning,
    task_complete: foldEnd,
    turn_complete: foldEnd,
    turn_aborted: foldAbort,
    thread_rolled_back: foldRollback,
    token_count: (fold, { payload }) => foldTokenCount(fold, payload),
    user_message(fold, parsed) {
      const image = asList(parsed.payload["images"]).length > 0 ? "[image]" : "";
      foldPromptEvent(fold, parsed, asText(parsed.payload["message"]) ?? image);
    },
    item_completed: foldCompleted,
    sub_agent_activity: (fold, { payload, at }) =>
      foldActivity(fold, payload, { callId: asText(payload["event_id"]), at }),
    collab_agent_spawn_end: (fold, { payload, at }) =>
      linked(fold, {
        callId: asText(payload["call_id"]),
        agentId: asText(payload["new_thread_id"]) ?? asText(payload["receiver_thread_id"]),
        at,
      }),
    exec_command_end: (fold, { payload }) =>
      closing(fold, asText(payload["call_id"]), { exitCode: asNumber(payload["exit_code"]) }),
    patch_apply_end: (fold, { payload }) =>
      closing(fold, asText(payload["call_id"]), { ok: payload["success"] === true }),
    error: foldError,
    thread_name_updated: ({ facts }, { payload }) => {
      facts.title = shortText(payload["thread_name"]) ?? facts.title;
    },
  }),
);

function foldBeginning(fold: CodexFold, { payload, at }: ParsedRow): void {
  settle(fold);
  movedOn(fold);
  fold.notes.awaited = null;
  turnBegan(fold, asText(payload["turn_id"]), at);
}

function foldEnd(fold: CodexFold, parsed: ParsedRow): void {
  const { payload, at } = parsed;
  if (!closesTurn(fold, payload)) return;
  const hasAnswer = asText(payload["last_agent_message"]) !== null;
  const own = errorOf(payload["error"]);
  if (own !== null) addEntry(fold, parsed, noticed(own, false));
  turnEnded(fold, own ?? (hasAnswer ? null : fold.notes.turnError), at);
}

/** Returns whether this record ends the open turn. If so, calls without a result will not get one. */
function closesTurn(fold: CodexFold, payload: JsonObject): boolean {
  settle(fold);
  const isOpen = isOfTurn(fold, asText(payload["turn_id"]));
  if (isOpen) movedOn(fold);
  return isOpen;
}

function errorOf(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return errorText(asText(value) ?? asText(asObject(value)?.["message"]) ?? "the turn failed");
}

function foldAbort(fold: CodexFold, parsed: ParsedRow): void {
  const { payload, at } = parsed;
  if (!closesTurn(fold, payload)) return;
  const reason = asText(payload["reason"]) ?? "interrupted";
  addEntry(fold, parsed, noticed(`The turn was aborted: ${shortLine(reason, 100)}`));
  turnAborted(fold, reason, at);
}

/** Codex took back the last turns. They stay in the file, but no longer belong to the session. */
function foldRollback(fold: CodexFold, parsed: ParsedRow): void {
  const { notes } = fold;
  settle(fold);
  const count = Math.min(asCount(parsed.payload["num_turns"]), 1e6);
  if (count === 0) return;
  const start = Math.max(0, notes.turns.length - count);
  const isAll = notes.turns.length < count && !notes.turnsCut;
  const afterRef = isAll || notes.turns.length === 0 ? null : (notes.turns[start] ?? null);
  // If only the file's tail was read, the earlier turns are missing. Then it is unknown what was rolled back.
  const isKnown = notes.turns.length > 0;
  notes.turns.length = start;
  const what = count === 1 ? "The last turn was" : `The last ${count} turns were`;
  addEntry(fold, parsed, noticed(`${what} rolled back`));
  if (!isKnown) return;
  const reason = "the agent rolled it back";
  fold.leftBehind.push({ inlineId: null, afterRef, beforeRef: notes.lastRef, reason });
}

/** Reads the facts that newer versions record only in this event. All other facts are in the items. */
function foldCompleted(fold: CodexFold, parsed: ParsedRow): void {
  const item = asObject(parsed.payload["item"]);
  if (item === null) return;
  const [id, text] = [asText(item["id"]), asText(item["text"])];
  switch (item["type"]) {
    case "UserMessage":
      foldPromptEvent(fold, parsed, textOf(item["content"]));
      return;
    case "CommandExecution":
      closing(fold, id, { exitCode: asNumber(item["exit_code"]) });
      return;
    case "FileChange":
      closing(fold, id, { ok: item["status"] !== "failed" && item["status"] !== "declined" });
      return;
    case "Plan":
      if (text !== null) addEntry(fold, parsed, planned({ text }));
      return;
    case "CollabAgentToolCall":
      foldCollab(fold, item, parsed.at);
      return;
    case "SubAgentActivity":
      foldActivity(fold, item, { callId: id, at: parsed.at });
      return;
    default:
      return;
  }
}

function foldCollab(fold: CodexFold, item: JsonObject, at: number | null): void {
  if (item["tool"] === "spawn_agent") {
    const ids = asList(item["receiver_thread_ids"]).slice(0, 100);
    for (const id of ids) linked(fold, { callId: asText(item["id"]), agentId: asText(id), at });
    return;
  }
  const tool = item["tool"] === "wait" ? "wait_agent" : (asText(item["tool"]) ?? "a tool");
  foldStates(fold, asObject(item["agents_states"]), { how: `${shortLine(tool, 40)}'s answer`, at });
}

/** Records that the session started or interrupted a sub-agent. */
function foldActivity(
  fold: CodexFold,
  fields: JsonObject,
  { callId, at }: { callId: string | null; at: number | null },
): void {
  const agentId = asText(fields["agent_thread_id"])?.toLowerCase() ?? null;
  if (agentId === null) return;
  const when = timeOf(fields["occurred_at_ms"]) ?? at;
  if (fields["kind"] === "started") {
    linked(fold, { callId, agentId, path: asText(fields["agent_path"]), at: when });
  } else if (fields["kind"] === "interrupted") {
    const how = "the record that it was interrupted";
    report(fold, { agentId, callId: null, state: "interrupted", how, error: null, at: when });
  }
}

function closing(
  { notes }: CodexFold,
  callId: string | null,
  end: { exitCode?: number | null; ok?: boolean },
): void {
  const call = notes.open.findLast(({ id }) => id === callId);
  if (call !== undefined) Object.assign(call, end);
}

function foldError(fold: CodexFold, parsed: ParsedRow): void {
  const message = errorText(asText(parsed.payload["message"]) ?? "an error");
  addEntry(fold, parsed, noticed(message, false));
  failed(fold, message, parsed.at);
}
