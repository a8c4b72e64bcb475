import { passwordsInAddresses } from "./detect/address.ts";
import { keyBlocksIn } from "./detect/block.ts";
import { spelledIn } from "./detect/command.ts";
import { namedIn } from "./detect/field.ts";
import { MARK, type Secret, Spans, type Tail, shapesIn } from "./detect/shape.ts";
import { firstChars } from "../text/fence.ts";

/** A text shorter than this is too short for a secret's name with its value. */
const LENGTH_MIN = 7;

/**
 * Returns text that may be kept and shown: everything that looks like a secret, or follows the name of one,
 * is replaced by a mark that says what it was. Linear in the length of the text, and idempotent.
 */
export function redact(text: string): string {
  if (text.length < LENGTH_MIN) return text;
  const { all } = secretsIn(text, null);
  return all.length === 0 ? text : shownPart(text, all, { from: 0, to: text.length });
}

export function shownPart(
  text: string,
  secrets: readonly Secret[],
  part: { from: number; to: number },
): string {
  let shown = "";
  let at = part.from;
  for (const { start, end, kind } of secrets) {
    if (kind === null || end <= part.from) continue;
    if (start >= part.to) break;
    shown += text.slice(at, start) + markOf(kind);
    at = end;
  }
  return shown + text.slice(at, Math.max(at, part.to));
}

export function markOf(kind: string): string {
  return `[redacted: ${kind}]`;
}

/**
 * Combines `HINT` and `LEADS`: only a text that matches can contain a secret that its context reveals. Every
 * string is tested, so this is one expression that rejects most characters at once.
 */
export const GIVEN_AWAY =
  /p(?:ass|wd)|s(?:ecret|ig(?:nature)?=)|token|key|c(?:red|ookie|url)|auth|m(?:nemonic|ysql|ariadb)|jwt|_p(?:w|at)|bearer|identified|redis-cli|login|ngrok|sql(?:plus|ldr)|expdp|impdp|rman/i;

/** Returns a text's secrets and marks. `tail` gets the index from which text added later may change them. */
export function secretsIn(text: string, tail: Tail | null): Spans {
  const isGivenAway = GIVEN_AWAY.test(text);
  const known = new Spans([
    ...marksIn(text),
    ...keyBlocksIn(text, tail),
    ...shapesIn(text),
    ...passwordsInAddresses(text),
    ...(isGivenAway ? spelledIn(text) : []),
  ]);
  const named = isGivenAway ? namedIn(text, known, tail) : [];
  return named.length === 0 ? known : new Spans([...named, ...known.all]);
}

/** Every stored string is checked here and most have no mark, so that case must be cheap. */
function marksIn(text: string): Secret[] {
  if (!text.includes("[redacted: ")) return [];
  const found = [...text.matchAll(MARK)];
  return found.map(({ index, 0: mark }) => ({ start: index, end: index + mark.length, kind: null }));
}

/** `excerpt` reads this many times `max` characters, because hiding secrets shortens the text. */
const READ_AHEAD = 8;

/** Returns the first characters of a text. Redacts before the cut, because a cut secret is not recognized. */
export function excerpt(text: string, max: number): string {
  // Limits the search, because a prompt may have megabytes.
  return firstChars(redact(text.slice(0, READ_AHEAD * max)), max);
}
