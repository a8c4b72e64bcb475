import { duration } from "../text/quantity.ts";

/** Describes an agent that is in a turn but has sent nothing for `silentMs`. */
export interface Silence {
  readonly silentMs: number;
  /** The tool that the agent called last, if that call has no result yet. */
  readonly tool: string | null;
  /** Set while the agent retries a model call after an error. */
  readonly retrying: {
    readonly status: number | null;
    readonly attempt: number | null;
    readonly attemptsMax: number | null;
  } | null;
}

export function silenceWords(silence: Silence): string {
  return `nothing heard for ${duration(silence.silentMs)}: ${knownOf(silence)}`;
}

function knownOf({ retrying, tool }: Silence): string {
  if (retrying !== null) {
    const after = retrying.status === null ? "a failed connection" : String(retrying.status);
    const of = retrying.attemptsMax === null ? "" : ` of ${retrying.attemptsMax}`;
    const attempt = retrying.attempt === null ? "" : `, attempt ${retrying.attempt}${of}`;
    return `its agent is retrying after ${after}${attempt}`;
  }
  return tool === null ? "waiting for its model" : `in ${tool}, but no process of it is running`;
}

export function silenceReason(silenceMaxMs: number): string {
  return `no sign of life for ${duration(silenceMaxMs)}, stopped`;
}

/** Returns when to check a silent agent next: soon at first, then every minute, and at each limit. */
export function nextLookMs(silentMs: number, limitsMs: readonly number[]): number {
  const regular = LOOKS_MS.find((ms) => ms > silentMs) ?? Math.floor(silentMs / 60_000 + 1) * 60_000;
  return Math.min(regular, ...limitsMs.filter((ms) => ms > silentMs));
}

const LOOKS_MS = [15_000, 30_000, 60_000];
