import type { Ending } from "../../facts.ts";
import type { JsonObject } from "../../lines/json-lines.ts";
import { asText } from "../../lines/value.ts";
import { abandoned } from "./calls.ts";
import type { Line } from "./notes.ts";
import { shortLine } from "../../../text/fence.ts";

const ERROR_MAX = 500;

export function prompted(line: Line, at: number | null): void {
  line.notes.open = [];
  set(line, { kind: "prompted", how: "its last row is a prompt without an answer", at });
}

export function answered(
  line: Line,
  row: JsonObject,
  { text, at }: { text: string; at: number | null },
): void {
  const message = row["message"] as JsonObject;
  const open = line.notes.open.at(-1);
  line.notes.before = null;
  if (row["isApiErrorMessage"] === true || message["model"] === "<synthetic>") {
    line.notes.open = [];
    const isNamed = row["isApiErrorMessage"] === true;
    const how = isNamed
      ? "its last answer is an API error"
      : "its last answer is no model's, but the program's";
    set(line, { kind: "failed", how, at, error: shortLine(text, ERROR_MAX) || "an API error" });
    return;
  }
  const stop = asText(message["stop_reason"]);
  if (open !== undefined) {
    set(line, { kind: "working", how: `its call of ${shortLine(open.tool, 60)} has no result`, at });
  } else if (stop === "max_tokens" || stop === "refusal" || stop === "model_context_window_exceeded") {
    set(line, {
      kind: "failed",
      how: `its last answer ended with ${stop}`,
      at,
      error: `the answer ended with ${stop}`,
    });
  } else if (stop === null && text.trim() !== "" && omitsStopReason(line.facts.agentVersion)) {
    set(line, { kind: "answered", how: "its last answer has text and no open call", at });
  } else if (stop === null || stop === "tool_use") {
    set(line, { kind: "working", how: UNFINISHED, at });
  } else {
    set(line, { kind: "ended", how: `its last answer ended with ${shortLine(stop, 40)}`, at });
  }
}

const CHANNEL_BROKE = /^(?:Error: )?Tool permission stream closed/u;

const UNFINISHED = "its last answer is not finished";

/** Up to this version Claude Code wrote no stop reasons at all, so a missing one means nothing. */
const LAST_WITHOUT_STOP_REASON = [2, 1, 49];

function omitsStopReason(version: string | null): boolean {
  const parts = (version ?? "").split(".").map((part) => Number.parseInt(part, 10));
  for (const [at, last] of LAST_WITHOUT_STOP_REASON.entries()) {
    const part = parts[at] ?? 0;
    if (part !== last) return Number.isNaN(part) || part < last;
  }
  return true;
}

export function resulted(line: Line, { error, at }: { error: string | null; at: number | null }): void {
  const open = line.notes.open.at(-1);
  if (open !== undefined) {
    set(line, { kind: "working", how: `its call of ${shortLine(open.tool, 60)} has no result`, at });
  } else if (error !== null) {
    set(line, {
      kind: "toolError",
      how: "its last row is a failed call",
      at,
      error: shortLine(error, ERROR_MAX),
      // The agent's own channel broke, so no answer follows.
      confirmed: CHANNEL_BROKE.test(error),
    });
  } else {
    set(line, { kind: "working", how: "its last row is a tool result without an answer", at });
  }
}

export function interrupted(line: Line, at: number | null): void {
  line.notes.open = [];
  abandoned(line);
  set(line, { kind: "interrupted", how: "its last row says that it was interrupted", at, confirmed: true });
}

/** Stop hooks run only after the turn has ended, so the last answer is complete. */
export function stopHooksRan(line: Line, at: number | null): void {
  const { kind, how } = line.facts.ending;
  const isAnswered = kind === "ended" || kind === "answered" || (kind === "working" && how === UNFINISHED);
  if (isAnswered && line.notes.open.length === 0) turnEnded(line, "stop_hook_summary", at);
}

/** Takes a record that the agent writes when a turn is over. */
export function turnEnded(line: Line, name: string, at: number | null): void {
  const { ending } = line.facts;
  abandoned(line);
  if (ending.kind === "failed" || ending.kind === "interrupted") {
    line.facts.ending = { ...ending, confirmed: true };
    return;
  }
  line.notes.open = [];
  set(line, { kind: "ended", how: `its turn ended with a ${name} record`, at, confirmed: true });
}

/** Restores the ending from before a command that needs no answer. */
export function asBefore(line: Line): void {
  if (line.notes.before !== null) line.facts.ending = line.notes.before;
  line.notes.before = null;
}

function set(line: Line, ending: Pick<Ending, "kind" | "how" | "at"> & Partial<Ending>): void {
  line.facts.ending = { confirmed: false, error: null, ...ending };
}
