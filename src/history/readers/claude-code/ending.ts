import { ERROR_MAX, failedCall, hasOpenCall, PROMPTED, RESULTED, setEnding } from "../../lines/ending.ts";
import { isVersionAtLeast } from "../../lines/text.ts";
import { asText, type JsonObject } from "../../lines/value.ts";
import { abandoned } from "./calls.ts";
import type { Line } from "./notes.ts";
import { shortLine } from "../../../text/fence.ts";

export function prompted(line: Line, at: number | null): void {
  line.notes.open = [];
  setEnding(line, { ...PROMPTED, at });
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
    setEnding(line, { kind: "failed", how, at, error: shortLine(text, ERROR_MAX) || "an API error" });
    return;
  }
  const stop = asText(message["stop_reason"]);
  const hasStopReasons = isVersionAtLeast(line.facts.agentVersion, FIRST_WITH_STOP_REASON);
  if (open !== undefined) {
    setEnding(line, { ...hasOpenCall(open.tool), at });
  } else if (stop === "max_tokens" || stop === "refusal" || stop === "model_context_window_exceeded") {
    const how = `its last answer ended with ${stop}`;
    setEnding(line, { kind: "failed", how, at, error: `the answer ended with ${stop}` });
  } else if (stop === null && text.trim() !== "" && !hasStopReasons) {
    setEnding(line, { kind: "answered", how: "its last answer has text and no open call", at });
  } else if (stop === null || stop === "tool_use") {
    setEnding(line, { kind: "working", how: UNFINISHED, at });
  } else {
    setEnding(line, { kind: "ended", how: `its last answer ended with ${shortLine(stop, 40)}`, at });
  }
}

const CHANNEL_BROKE = /^(?:Error: )?Tool permission stream closed/u;

const UNFINISHED = "its last answer is not finished";

/** Versions before this one wrote no stop reasons, so in them a missing stop reason means nothing. */
const FIRST_WITH_STOP_REASON = [2, 1, 50];

export function resulted(line: Line, { error, at }: { error: string | null; at: number | null }): void {
  const open = line.notes.open.at(-1);
  if (open !== undefined) {
    setEnding(line, { ...hasOpenCall(open.tool), at });
  } else if (error !== null) {
    // This error is final if it says that the agent's permission stream closed: no answer will follow.
    setEnding(line, { ...failedCall(error), at, confirmed: CHANNEL_BROKE.test(error) });
  } else {
    setEnding(line, { ...RESULTED, at });
  }
}

export function interrupted(line: Line, at: number | null): void {
  line.notes.open = [];
  abandoned(line);
  setEnding(line, {
    kind: "interrupted",
    how: "its last row says that it was interrupted",
    at,
    confirmed: true,
  });
}

/** Stop hooks run only after the turn has ended, so the last answer is complete. */
export function stopHooksRan(line: Line, at: number | null): void {
  const { kind, how } = line.facts.ending;
  const isAnswered = kind === "ended" || kind === "answered" || (kind === "working" && how === UNFINISHED);
  if (isAnswered && line.notes.open.length === 0) turnEnded(line, "stop_hook_summary", at);
}

/** Sets the ending when a record says that the turn is over. `name` is the name of that record. */
export function turnEnded(line: Line, name: string, at: number | null): void {
  const { ending } = line.facts;
  abandoned(line);
  if (ending.kind === "failed" || ending.kind === "interrupted") {
    line.facts.ending = { ...ending, confirmed: true };
    return;
  }
  line.notes.open = [];
  setEnding(line, { kind: "ended", how: `its turn ended with a ${name} record`, at, confirmed: true });
}

/** Restores the ending that was set before a command. Claude Code ran the command, so no answer follows. */
export function asBefore(line: Line): void {
  if (line.notes.before !== null) line.facts.ending = line.notes.before;
  line.notes.before = null;
}
