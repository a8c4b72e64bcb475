import { boundedText } from "./bounded.ts";

/** A turn's last message stands in its row, its callback and its trigger: beyond this only the entry has all of it. */
export const REPORT_CHARS_MAX = 64 * 1024;

export function shownReport(text: string): string {
  return boundedText(text, REPORT_CHARS_MAX);
}
