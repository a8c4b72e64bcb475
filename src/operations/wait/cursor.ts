import type { InputOf } from "../../contract/index.ts";
import { Refusal } from "../../contract/refusal.ts";

/** A shorter timeout is raised to this, because it probably comes from a model that meant seconds. */
const SHORTEST_MS = 10_000;
const PATIENT_AFTER = 2;
/** How many shown triggers a cursor remembers. Older ones have long been answered. */
const SHOWN_MAX = 64;

export interface WaitCursor {
  readonly ids: string[];
  /** Number of consecutive waits without a result. */
  readonly misses: number;
  /** Short ids of the triggers that this wait has shown. */
  readonly shown: string[];
}

export function encodeCursor(cursor: WaitCursor): string {
  const newest = cursor.shown.slice(-SHOWN_MAX);
  const shown = newest.length === 0 ? "" : `~${newest.join(".")}`;
  return `w${cursor.misses}.${cursor.ids.map((id) => id.slice(-8)).join(".")}${shown}`;
}

export function decodeCursor(text: string | undefined): WaitCursor {
  if (text === undefined) return { ids: [], misses: 0, shown: [] };
  const match = /^w(\d{1,4})\.([0-9a-f.-]*)(?:~([0-9a-f.]*))?$/.exec(text);
  if (match === null) {
    throw new Refusal(
      "invalid_input",
      `"${text}" is not a cursor that wait_session gave. Leave it out to wait for all open children.`,
    );
  }
  const parts = (text: string | undefined): string[] => (text ?? "").split(".").filter((id) => id !== "");
  return { misses: Number(match[1]), ids: parts(match[2]), shown: parts(match[3]) };
}

/** Returns how long this wait blocks: the requested time, raised if too short, within the client's cap. */
export function waitTimeMs(input: InputOf<"waitChildren">, misses: number): number {
  const { capMs, timeoutMs } = input;
  if (timeoutMs !== undefined && timeoutMs <= 0) return 0;
  if (input.sourceForm) return Math.min(timeoutMs ?? capMs, capMs);
  if (timeoutMs === undefined || misses >= PATIENT_AFTER) return capMs;
  return Math.min(Math.max(timeoutMs, SHORTEST_MS), capMs);
}
