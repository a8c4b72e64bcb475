import { redact } from "./redact.ts";

/** How much more is read than kept, because a secret that was hidden leaves room. */
const READ_AHEAD = 8;

/** The first characters of a text, without secrets: a secret that is cut no longer looks like one. */
export function excerpt(text: string, max: number): string {
  // Cut before it is spread: a prompt may have megabytes.
  const shown = redact(text.slice(0, READ_AHEAD * max)).slice(0, 2 * max);
  return Array.from(shown).slice(0, max).join("");
}
