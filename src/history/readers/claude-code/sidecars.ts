import { basename, join } from "node:path";
import type { SessionFacts, ToldState } from "../../facts.ts";
import type { HistoryEntry } from "../../port.ts";
import { readSmall, readSmallObject, readStart } from "../../lines/byte-file.ts";
import { shortText, timeOf } from "../../lines/text.ts";
import { asText, type JsonObject } from "../../lines/value.ts";
import { type Extra, runFiles } from "./layout.ts";
import type { ClaudeFold } from "./notes.ts";
import { parsedObject } from "../../lines/parse-json.ts";

/** Reads the sidecar, a workflow's journal, and outputs that were too large for a row. */
export async function foldSidecars(fold: ClaudeFold, { isLast }: { isLast: boolean }): Promise<void> {
  const { sidecar, runId, folder } = fold.found.extra as Extra;
  if (folder !== null) await foldOutputs(fold.entries, folder, fold.textMax);
  // The sidecar, journal and snapshot describe the current state, so they are read once, at the end.
  if (!isLast) return;
  if (sidecar !== null) await foldSidecar(fold.facts, sidecar);
  if (runId !== null && folder !== null) await foldRun(fold.facts, folder, runId);
}

/** The sidecar is written when a sub-agent starts. Newer versions later add `finished` to it. */
async function foldSidecar(facts: SessionFacts, path: string): Promise<void> {
  const sidecar = await readSmallObject(path);
  if (sidecar === null) return;
  const callId = asText(sidecar["toolUseId"]);
  const id = asText(sidecar["parentAgentId"]);
  if (callId !== null || id !== null) {
    const how = callId === null ? "its sidecar names its parent" : "its sidecar names the call";
    facts.parent = { id, callId, how };
  }
  facts.agentType = shortText(sidecar["agentType"]) ?? facts.agentType;
  facts.description = shortText(sidecar["description"]) ?? facts.description;
  facts.name = shortText(sidecar["name"]) ?? facts.name;
  facts.model ??= asText(sidecar["model"]);
  // Only versions that write `requestShape` write `finished`. In other versions a missing `finished` means
  // nothing.
  if (sidecar["finished"] === true) facts.finished = true;
  else if (typeof sidecar["requestShape"] === "string") facts.finished = false;
}

const RUN_FILE_BYTES_MAX = 8 * 1024 * 1024;

/**
 * A run's journal records each sub-agent's start and result. Its snapshot, written when the run is over,
 * names the task and its outcome.
 */
async function foldRun(facts: SessionFacts, folder: string, runId: string): Promise<void> {
  const [journalPath, snapshotPath] = runFiles(folder, runId);
  const snapshot = await readSmallObject(snapshotPath, RUN_FILE_BYTES_MAX);
  if ((facts.parent?.callId ?? null) === null) {
    const taskIds = [runId, asText(snapshot?.["taskId"])].filter((id) => id !== null);
    facts.parent = {
      id: facts.parent?.id ?? null,
      callId: null,
      taskIds,
      how: "its run belongs to the workflow's call",
    };
  }
  if (snapshot !== null) foldSnapshot(facts, snapshot);
  const journal = (await readSmall(journalPath, RUN_FILE_BYTES_MAX)) ?? "";
  for (const line of journal.split("\n")) foldJournalLine(facts, line);
}

/** The end of a run also ends every sub-agent of the run that had not ended before. */
function foldSnapshot(facts: SessionFacts, snapshot: JsonObject): void {
  const status = asText(snapshot["status"]) ?? "";
  if (status === "running" || status === "pending") return;
  const { kind } = facts.ending;
  const hasEnd = kind === "ended" || kind === "failed" || kind === "interrupted";
  const wasStopped = ["killed", "stopped", "cancelled", "aborted"].includes(status);
  const at = timeOf(snapshot["endedAt"] ?? snapshot["completedAt"] ?? snapshot["timestamp"]);
  replaceReport(facts, {
    state: wasStopped && !hasEnd ? "cancelled" : "unknown",
    how: "the workflow's record of its end",
    error: null,
    at,
  });
}

/**
 * Replaces any earlier report about this sub-agent. So the journal's report replaces the snapshot's, which is
 * about the whole run.
 */
function replaceReport(facts: SessionFacts, report: Pick<ToldState, "state" | "how" | "error" | "at">): void {
  const own = { agentId: facts.id, callId: null, firstAt: report.at, ...report };
  facts.told = [...facts.told.filter(({ agentId }) => agentId !== facts.id), own];
}

function foldJournalLine(facts: SessionFacts, line: string): void {
  if (!line.includes(facts.id)) return;
  const event = parsedObject(line);
  if (event?.["agentId"] !== facts.id) return;
  const type = asText(event["type"]) ?? asText(event["event"]);
  const isOver = type === "result" || type === "completed" || type === "failed";
  if (!isOver) return;
  const error = asText(event["error"]);
  const at = timeOf(event["timestamp"] ?? event["at"]);
  replaceReport(facts, {
    state: error !== null || type === "failed" ? "failed" : "completed",
    how: "the workflow's journal",
    error: shortText(error, 2000),
    at,
  });
}

const STUB = "<persisted-output>";

/** Loads large outputs. Their rows have only the beginning and the name of the file with the full output. */
async function foldOutputs(entries: HistoryEntry[], folder: string, textMax: number): Promise<void> {
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== "toolResult" || !entry.body.text.startsWith(STUB)) continue;
    const name = /([^\s/\\]{1,200}\.(?:txt|json))\b/u.exec(entry.body.text.replaceAll("\\", "/"))?.[1];
    if (name === undefined) continue;
    // Only the base name is trusted: the file must be in the session's own folder.
    const path = join(folder, "tool-results", basename(name));
    // Claude Code removes old outputs. The entry then keeps its short text.
    const start = await readStart(path, textMax).catch(() => null);
    if (start === null) continue;
    const note = `\n[… the output has ${start.sizeBytes} bytes in the agent's own file]`;
    const text = start.sizeBytes <= textMax ? start.text : `${start.text}${note}`;
    entries[index] = { ...entry, body: { ...entry.body, text, paths: [path] } };
  }
}
