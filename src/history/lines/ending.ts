import { shortLine } from "../../text/fence.ts";
import type { Ending, SessionFacts } from "../facts.ts";

export function setEnding(
  { facts }: { readonly facts: SessionFacts },
  ending: Pick<Ending, "kind" | "how" | "at"> & Partial<Ending>,
): void {
  facts.ending = { confirmed: false, error: null, ...ending };
}

/** Endings (how a file ends) that are the same in every format. */

export const PROMPTED = { kind: "prompted", how: "its last row is a prompt without an answer" } as const;

export const RESULTED = { kind: "working", how: "its last row is a tool result without an answer" } as const;

export function hasOpenCall(tool: string): Pick<Ending, "kind" | "how"> {
  return { kind: "working", how: `its call of ${shortLine(tool, 60)} has no result` };
}

export function failedCall(error: string | null): Pick<Ending, "kind" | "how" | "error"> {
  return {
    kind: "toolError",
    how: "its last row is a failed call",
    error: shortLine(error ?? "the call failed", ERROR_MAX),
  };
}

/** The maximum length of the error text in an ending. */
export const ERROR_MAX = 500;
