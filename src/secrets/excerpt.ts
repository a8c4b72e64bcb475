import { firstChars } from "../text/cut.ts";
import { redact } from "./redact.ts";

/** How much more is read than kept, because a secret that was hidden leaves room. */
const READ_AHEAD = 8;

/** The first characters of a text, without secrets: a secret that is cut no longer looks like one. */
export function excerpt(text: string, max: number): string {
  // Cut before it is searched: a prompt may have megabytes.
  return firstChars(redact(text.slice(0, READ_AHEAD * max)), max);
}
