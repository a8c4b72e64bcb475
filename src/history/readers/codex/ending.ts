import { hasOpenCall, PROMPTED, RESULTED, setEnding } from "../../lines/ending.ts";
import type { CodexFold } from "./notes.ts";
import { shortLine } from "../../../text/fence.ts";

const ERROR_MAX = 2000;

/** Begins a turn, and forgets the open calls and the error of the turn before. */
export function turnBegan(fold: CodexFold, turnId: string | null, at: number | null): void {
  const { notes, facts } = fold;
  Object.assign(notes, { hasTurns: true, turnOpen: true, turnId, turnError: null, turnHasPrompt: false });
  notes.open = [];
  facts.promptedAt = at ?? facts.promptedAt;
  setEnding(fold, { kind: "working", how: "its last turn began and has no recorded end", at });
}

/** False only when `turnId` is known to be another turn than the open one. */
export function isOfTurn({ notes }: CodexFold, turnId: string | null): boolean {
  return notes.turnOpen !== true || turnId === null || notes.turnId === null || turnId === notes.turnId;
}

export function turnEnded(fold: CodexFold, error: string | null, at: number | null): void {
  closeTurn(fold);
  if (error === null) {
    setEnding(fold, { kind: "ended", how: "its last turn has a record of its end", at, confirmed: true });
    return;
  }
  const how = "its last turn ended with an error";
  setEnding(fold, { kind: "failed", how, at, confirmed: true, error: shortLine(error, ERROR_MAX) });
}

export function turnAborted(fold: CodexFold, reason: string, at: number | null): void {
  closeTurn(fold);
  const how =
    reason === "replaced"
      ? "its last turn was replaced by another that has not begun"
      : `its last turn was aborted (${shortLine(reason, 40)})`;
  setEnding(fold, { kind: "interrupted", how, at, confirmed: true });
}

function closeTurn({ notes }: CodexFold): void {
  Object.assign(notes, { hasTurns: true, turnOpen: false, turnId: null, turnError: null });
  notes.open = [];
}

/** Sets how the session's file now ends, after a row that neither begins nor ends a turn. */
export function after(
  fold: CodexFold,
  shape: "prompt" | "answer" | "commentary" | "call" | "result",
  at: number | null,
): void {
  const { notes } = fold;
  if (notes.turnOpen === true) return;
  if (notes.hasTurns) {
    // Rows were skipped, so the beginning of this row's turn is unknown. The turn counts as open until a
    // later row records its end.
    if (notes.turnOpen === null)
      setEnding(fold, { kind: "working", how: "its last turn has no recorded end", at });
    return;
  }
  const open = notes.open.at(-1);
  if (shape === "prompt") setEnding(fold, { ...PROMPTED, at });
  else if (open !== undefined) setEnding(fold, { ...hasOpenCall(open.tool), at });
  else if (shape === "answer") setEnding(fold, { kind: "ended", how: "its last row is an answer", at });
  else if (shape === "commentary")
    setEnding(fold, { kind: "working", how: "its last answer is not the final one", at });
  else setEnding(fold, { ...RESULTED, at });
}

/** Records an error. If the file records the ends of turns, the error takes effect at the turn's end. */
export function failed(fold: CodexFold, error: string, at: number | null): void {
  if (fold.notes.hasTurns) fold.notes.turnError = shortLine(error, ERROR_MAX);
  else
    setEnding(fold, {
      kind: "failed",
      how: "its last row is an error",
      at,
      error: shortLine(error, ERROR_MAX),
    });
}
