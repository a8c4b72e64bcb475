import { NOTHING_SAID } from "../../facts.ts";
import { ERROR_MAX, failedCall, hasOpenCall, PROMPTED, RESULTED, setEnding } from "../../lines/ending.ts";
import type { FoldedCall } from "./calls.ts";
import type { GeminiFold, Step } from "./notes.ts";
import { shortLine } from "../../../text/fence.ts";

/** The tool with which a sub-agent hands in its work. */
const HAND_IN = "complete_task";

export function prompted(fold: GeminiFold, at: number | null): void {
  setEnding(fold, { ...PROMPTED, at });
}

export function answered(
  fold: GeminiFold,
  { text, hasCalls, at }: { text: string; hasCalls: boolean; at: number | null },
): void {
  if (text.trim() === "" || hasCalls) {
    setEnding(fold, { kind: "working", how: "its last answer calls a tool, or is not finished", at });
  } else {
    setEnding(fold, { kind: "ended", how: "its last row is an answer", at });
  }
}

/** `calls` is null when only the results of the calls are known. */
export function resulted(fold: GeminiFold, calls: readonly FoldedCall[] | null, at: number | null): void {
  const open = calls?.find(({ state }) => state === null);
  const last = calls?.at(-1);
  if (open !== undefined) {
    setEnding(fold, { ...hasOpenCall(open.tool), at });
  } else if (calls !== null && isHandedIn(fold, calls)) {
    setEnding(fold, { kind: "ended", how: `it handed its work in with ${HAND_IN}`, at, confirmed: true });
  } else if (calls !== null && calls.length > 0 && calls.every(({ state }) => state === "cancelled")) {
    setEnding(fold, { kind: "interrupted", how: "its last call was cancelled", at });
  } else if (last?.state === "error") {
    setEnding(fold, { ...failedCall(last.error), at });
  } else if (calls !== null || fold.facts.ending.kind !== "toolError") {
    // With `calls` null, a failed call comes again as a plain result, which must not replace `toolError`.
    setEnding(fold, { ...RESULTED, at });
  }
}

function isHandedIn({ facts }: GeminiFold, calls: readonly FoldedCall[]): boolean {
  return facts.isSubagent && calls.some(({ tool, state }) => tool === HAND_IN && state === "success");
}

export function cancelled(fold: GeminiFold, at: number | null): void {
  const how = "its last row says that the request was cancelled";
  setEnding(fold, { kind: "interrupted", how, at, confirmed: true });
}

/** Ignores an error outside a turn, because such an error is not about the session's work. */
export function errored(fold: GeminiFold, text: string, at: number | null): void {
  if (fold.facts.ending.kind === "ended" || fold.facts.ending.kind === "empty") return;
  setEnding(fold, { kind: "failed", how: "its last row is an error", at, error: shortLine(text, ERROR_MAX) });
}

/** Called when the last messages were taken back. An answer that was still expected will not come. */
export function takenBack(fold: GeminiFold, last: Step | null): void {
  const { kind, at } = fold.facts.ending;
  if (kind === "prompted" || kind === "working" || kind === "toolError") {
    const how = "its last prompt was taken back without an answer";
    setEnding(fold, { kind: "interrupted", how, at, confirmed: true });
  } else {
    returnedTo(fold, last);
  }
}

export function returnedTo(fold: GeminiFold, last: Step | null): void {
  if (last === null || last.ending === "empty") fold.facts.ending = NOTHING_SAID;
  else setEnding(fold, { kind: last.ending, how: "it was taken back to an earlier message", at: last.at });
}
