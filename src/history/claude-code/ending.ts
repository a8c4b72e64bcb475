import type { Ending } from "../facts.ts";
import type { JsonObject } from "../json-lines.ts";
import { oneLine } from "../text.ts";
import { asText } from "../value.ts";
import { abandoned } from "./calls.ts";
import type { Line } from "./notes.ts";

const ERROR_MAX = 500;

/** What the file's end says after each kind of row. */

export function prompted(line: Line, at: number | null): void {
  line.notes.open = [];
  set(line, { kind: "prompted", how: "a prompt stands last, without an answer", at });
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
    set(line, { kind: "failed", how, at, error: oneLine(text, ERROR_MAX) || "an API error" });
    return;
  }
  const stop = asText(message["stop_reason"]);
  if (open !== undefined) {
    set(line, { kind: "working", how: `its call of ${oneLine(open.tool, 60)} has no result`, at });
  } else if (stop === "max_tokens" || stop === "refusal" || stop === "model_context_window_exceeded") {
    set(line, {
      kind: "failed",
      how: `its last answer ended with ${stop}`,
      at,
      error: `the answer ended with ${stop}`,
    });
  } else if (stop === null || stop === "tool_use") {
    set(line, { kind: "working", how: "its last answer is not finished", at });
  } else {
    set(line, { kind: "ended", how: `its last answer ended with ${oneLine(stop, 40)}`, at });
  }
}

export function resulted(line: Line, { error, at }: { error: string | null; at: number | null }): void {
  const open = line.notes.open.at(-1);
  if (open !== undefined) {
    set(line, { kind: "working", how: `its call of ${oneLine(open.tool, 60)} has no result`, at });
  } else if (error !== null) {
    set(line, {
      kind: "toolError",
      how: "its last row is a failed call",
      at,
      error: oneLine(error, ERROR_MAX),
    });
  } else {
    set(line, { kind: "working", how: "a tool's result stands last, without an answer", at });
  }
}

export function interrupted(line: Line, at: number | null): void {
  line.notes.open = [];
  abandoned(line);
  set(line, { kind: "interrupted", how: "its last row says that it was interrupted", at, confirmed: true });
}

/** A record that the agent writes when a turn is over. */
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

/** After a command that needs no answer all is as it was. */
export function asBefore(line: Line): void {
  if (line.notes.before !== null) line.facts.ending = line.notes.before;
  line.notes.before = null;
}

function set(line: Line, ending: Pick<Ending, "kind" | "how" | "at"> & Partial<Ending>): void {
  line.facts.ending = { confirmed: false, error: null, ...ending };
}
