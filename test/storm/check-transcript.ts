import { type Checking, messageDetail } from "./check.ts";
import type { EntryRow, TurnRow } from "./tables.ts";

const WORD = /^W-[0-9a-f]{8}$/;
const MARK = /You may have seen this already/;

/**
 * Checks that a transcript contains everything that the agent said or received in a complete turn, and
 * nothing twice.
 */
export function checkTranscripts(checking: Checking): void {
  const { tables, findings, counts } = checking;
  counts.add("entries", tables.entries.length);
  const bySession = Map.groupBy(tables.entries, (entry) => entry.sessionId);
  for (const session of tables.sessions) {
    const own = (bySession.get(session.id) ?? []).toSorted((a, b) => a.idx - b.idx);
    const isWhole = own.length === session.entryCount && own.every((entry, at) => entry.idx === at);
    const detail = { session: session.name, id: session.id, entries: own.length, count: session.entryCount };
    if (!isWhole) findings.add("transcript-gap", "the entries of a session have a gap", detail);
    checkResults(checking, own);
  }
  checkMessageEntries(checking);
  checkWords(checking, bySession);
}

/** Checks that no tool call has two results. */
function checkResults({ findings }: Checking, entries: readonly EntryRow[]): void {
  const results = entries.filter((entry) => entry.kind === "toolResult" && entry.body.callId !== undefined);
  for (const [callId, all] of Map.groupBy(results, (entry) => entry.body.callId)) {
    if (all.length < 2) continue;
    const detail = { callId, sessionId: all[0]!.sessionId, at: all.map((entry) => entry.idx) };
    findings.add("transcript-twice", "a tool result is in the transcript twice", detail);
  }
}

function checkMessageEntries(checking: Checking): void {
  const { tables, findings } = checking;
  const entries = Map.groupBy(
    tables.entries.filter((entry) => entry.body.messageId !== undefined),
    (entry) => entry.body.messageId!,
  );
  for (const message of tables.messages) {
    const own = entries.get(message.id) ?? [];
    const at = own.map((entry) => `${entry.idx}${MARK.test(entry.body.text ?? "") ? " marked" : ""}`);
    const unmarked = own.filter((entry) => !MARK.test(entry.body.text ?? ""));
    const detail = { ...messageDetail(checking, message), entries: at };
    if (unmarked.length > 1)
      findings.add("transcript-twice", "a message is in the transcript twice without the mark", detail);
    const isPrompted = message.carrier === "prompt" || message.carrier === "steer";
    if (message.status === "landed" && isPrompted && own.length === 0) {
      findings.add("transcript-lost", "a message that landed is not in the transcript", detail);
    }
  }
}

/**
 * Checks the words of scripts, which say each word once. The transcript must not contain a word more often
 * than the journal, and must contain every word of a complete turn.
 */
function checkWords(checking: Checking, bySession: ReadonlyMap<string, readonly EntryRow[]>): void {
  const { tables, journals, findings, counts } = checking;
  for (const session of tables.sessions) {
    const records = journals.files.get(session.agentSessionId ?? "");
    if (records === undefined) continue;
    const said = count(records.flatMap((record) => (record.kind === "agent" ? [record.text] : [])));
    const entries = (bySession.get(session.id) ?? []).filter(
      (entry) => entry.author === "agent" && entry.kind === "text",
    );
    const written = count(entries.map((entry) => entry.body.text ?? ""));
    counts.add("words said", said.size);
    for (const [text, times] of written) {
      const detail = {
        session: session.name,
        id: session.id,
        text,
        transcript: times,
        journal: said.get(text) ?? 0,
      };
      if (times > (said.get(text) ?? 0))
        findings.add(
          "transcript-twice",
          "words are in the transcript more often than they were said",
          detail,
        );
    }
    for (const { text, turn } of wordsOfTurns(checking, session.agentSessionId!)) {
      const isWhole = turn.status === "completed" && turn.attempt === 1;
      if (!isWhole || written.has(text)) continue;
      findings.add("transcript-lost", "words of a completed turn are missing", {
        session: session.name,
        text,
        turn: turn.idx,
      });
    }
  }
}

/** Returns each word that an agent said, with its turn. */
function wordsOfTurns(
  { journals, tables, turns }: Checking,
  file: string,
): { text: string; turn: TurnRow }[] {
  const byDelivery = new Map(tables.messages.map((message) => [message.deliveryId, message]));
  const starts = new Map<number, TurnRow | undefined>();
  for (const [id, all] of journals.got) {
    const turnId = byDelivery.get(id)?.turnId ?? null;
    const last = all.findLast((got) => got.file === file && got.by === "prompt");
    for (const got of all) {
      if (got.file !== file || got.by !== "prompt") continue;
      // If a message was delivered twice, only the last delivery belongs to the turn in which it landed.
      starts.set(got.at, got === last && turnId !== null ? turns.get(turnId) : undefined);
    }
  }
  const found: { text: string; turn: TurnRow }[] = [];
  let turn: TurnRow | undefined;
  for (const [at, record] of (journals.files.get(file) ?? []).entries()) {
    if (record.kind === "user" && record.steered !== true) turn = starts.get(at);
    if (record.kind === "agent" && WORD.test(record.text) && turn !== undefined)
      found.push({ text: record.text, turn });
  }
  return found;
}

function count(texts: readonly string[]): Map<string, number> {
  const counted = new Map<string, number>();
  for (const text of texts) if (WORD.test(text)) counted.set(text, (counted.get(text) ?? 0) + 1);
  return counted;
}
