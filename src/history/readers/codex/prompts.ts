import { noticed, reported, said } from "../../lines/entry-body.ts";
import { movedOn } from "../../lines/spawn-call.ts";
import { cut, promptKey } from "../../lines/text.ts";
import { asList, asObject, asText, type JsonObject, pushBounded } from "../../lines/value.ts";
import { notified } from "./calls.ts";
import { after } from "./ending.ts";
import { addEntry, addEntryAt, type ParsedRow, textOf } from "./entries.ts";
import type { CodexFold, PendingPrompt } from "./notes.ts";
import { shortLine } from "../../../text/fence.ts";

/**
 * Rows with the role `user` are prompts or text that Codex injects. Newer versions mark which of the two a
 * row is. In older versions an event repeats each prompt, so a row is held back until the next row shows
 * whether it is a prompt. The oldest versions have no events, so only the wording decides.
 */
export function foldUserItem(fold: CodexFold, parsed: ParsedRow, { isFlat }: { isFlat: boolean }): void {
  const { notes } = fold;
  const { payload } = parsed;
  const text = textOf(payload["content"]);
  const kinds = kindsOf(payload);
  const known = kinds.length > 0 ? (kinds.every(isUsers) ? "prompt" : "injected") : null;
  const looksInjected = INJECTED.test(text);
  if (known === "injected" || (known === null && isFlat && looksInjected)) {
    addInjected(fold, parsed, text);
    return;
  }
  const key = promptKey(text);
  if (known === "prompt" || isFlat) {
    foldPrompt(fold, text, { ref: parsed.ref, at: parsed.at, key });
    notes.awaited = { what: "event", key };
  } else if (isAwaited(fold, "item", key)) {
    notes.awaited = null;
  } else {
    const { ref, at, row } = parsed;
    notes.held = { ref, offset: row.offset, text: cut(text, fold.textMax), key, at, looksInjected };
  }
}

/** A prompt event confirms the row that is held back, repeats an added prompt, or records a new prompt. */
export function foldPromptEvent(fold: CodexFold, parsed: ParsedRow, text: string): void {
  const { notes } = fold;
  const { held } = notes;
  const key = promptKey(text);
  if (isAwaited(fold, "event", key)) {
    notes.awaited = null;
    return;
  }
  if (held !== null && (held.key === key || !held.looksInjected)) {
    notes.held = null;
    fold.heldFrom = held.offset;
    foldPrompt(fold, held.text, held);
    return;
  }
  settle(fold);
  foldPrompt(fold, text, { ref: parsed.ref, at: parsed.at, key });
  notes.awaited = { what: "item", key };
}

/** Called when no event confirms the row that is held back. The row is then added as injected text. */
export function settle(fold: CodexFold): void {
  const { held } = fold.notes;
  if (held === null) return;
  fold.notes.held = null;
  fold.heldFrom = held.offset;
  addInjected(fold, held, held.text);
}

/** Whether this is the second record of a prompt that already has an entry. */
function isAwaited({ notes: { awaited } }: CodexFold, what: "item" | "event", key: string): boolean {
  return awaited?.what === what && awaited.key === key;
}

function foldPrompt(
  fold: CodexFold,
  text: string,
  { ref, at, key }: Pick<PendingPrompt, "ref" | "at" | "key">,
): void {
  const { facts, notes } = fold;
  beginTurn(notes);
  if (!notes.hasTurns) notes.open = [];
  // A sub-agent is prompted by the session that started it.
  addEntryAt(fold, { ref, at }, said(facts.isSubagent ? "session" : "person", text));
  facts.firstPrompt ??= shortLine(text, 200);
  facts.promptKey ??= key;
  facts.promptedAt = at ?? facts.promptedAt;
  facts.messageCount += 1;
  movedOn(fold);
  after(fold, "prompt", at);
}

/** At a turn's first prompt, remembers the entry before the turn. A later rollback needs it. */
function beginTurn(notes: CodexFold["notes"]): void {
  if (notes.turnHasPrompt) return;
  notes.turnsCut = pushBounded(notes.turns, notes.lastRef, TURNS_MAX) || notes.turnsCut;
  notes.turnHasPrompt = notes.hasTurns;
}

const TURNS_MAX = 256;

/** Adds a sub-agent's report as a callback, and any other injected text as a notice. */
function addInjected(fold: CodexFold, { ref, at }: Pick<PendingPrompt, "ref" | "at">, text: string): void {
  const trimmed = text.trim();
  // `<turn_aborted>` gets no entry, because the record of the turn's end says the same.
  if (trimmed === "" || trimmed.startsWith("<turn_aborted>")) return;
  const report = notified(fold, trimmed, at);
  addEntryAt(fold, { ref, at }, report ? reported(report) : noticed(text));
}

function kindsOf(payload: JsonObject): string[] {
  const passed = asObject(payload["internal_chat_message_metadata_passthrough"]);
  return asList(passed?.["content_item_kinds"]).flatMap((kind) => asText(kind) ?? []);
}

function isUsers(kind: string): boolean {
  return kind.startsWith("user.");
}

const INJECTED =
  /^\s*(?:# AGENTS\.md instructions|<(?:environment_context|user_instructions|INSTRUCTIONS|skill|user_shell_command|turn_aborted|subagent_notification|hook_prompt|permissions|collaboration_mode|user_action|ide_context|recommended_plugins|additional_context|internal_context)[\s>_-])/u;

/** Adds a message from another session. Only Codex versions whose sub-agents exchange mail write these. */
export function foldMail(
  fold: CodexFold,
  parsed: ParsedRow,
  mail: { author: string | null; text: string },
): void {
  const { facts, notes } = fold;
  const isReport = mail.text.startsWith("Message Type: FINAL_ANSWER\n");
  const text = mail.text === "" ? "[encrypted]" : mail.text;
  if (isReport) {
    notified(fold, text, parsed.at);
    addEntry(fold, parsed, reported(text));
    return;
  }
  beginTurn(notes);
  addEntry(fold, parsed, said("session", text));
  facts.messageCount += 1;
  const payload = text.slice(text.indexOf("\nPayload:\n") + 1).replace(/^Payload:\n/u, "");
  if (facts.isSubagent && payload !== "" && !payload.includes("[encrypted]")) {
    facts.firstPrompt ??= shortLine(payload, 200);
  }
}
