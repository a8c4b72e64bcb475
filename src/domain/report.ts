import { boundedText } from "../text/cut.ts";

/** A turn's last message stands in its row, its callback and its trigger: beyond this only the entry has all of it. */
export const REPORT_CHARS_MAX = 64 * 1024;

export function shownReport(text: string): string {
  return boundedText(text, REPORT_CHARS_MAX);
}

/** What one turn of a round left. */
export interface TurnSaid {
  /** Its final message; null where it said nothing. */
  readonly lastMessage: string | null;
  /** Callbacks of the session's own children were all it had been sent. */
  readonly isAboutCallbacks: boolean;
}

/** What a round has to tell, and what its agent said after that. */
export interface Report {
  readonly report: string | null;
  /** The last message, where it is not the report. */
  readonly lastWords: string | null;
}

/**
 * The report of a round is its last final message that is not merely an answer to a callback: a
 * parent that answers a late child with "noted" has not replaced what it reported before.
 */
export function reportOf(turns: readonly TurnSaid[]): Report {
  let report: string | null = null;
  let last: string | null = null;
  for (const { lastMessage, isAboutCallbacks } of turns) {
    if (lastMessage === null || lastMessage.trim() === "") continue;
    last = lastMessage;
    const isMereAnswer = isAboutCallbacks && report !== null && lastMessage.length < report.length;
    if (!isMereAnswer) report = lastMessage;
  }
  return { report, lastWords: last === report ? null : last };
}
