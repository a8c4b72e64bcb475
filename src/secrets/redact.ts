import { passwordsInAddresses } from "./detect/address.ts";
import { keyBlocksIn } from "./detect/block.ts";
import { spelledIn } from "./detect/command.ts";
import { namedIn } from "./detect/field.ts";
import { type Secret, Spans, type Tail, shapesIn } from "./detect/shape.ts";
import { firstChars } from "../text/fence.ts";

/** Nothing shorter can hold a name with its value. */
const LENGTH_MIN = 7;
const MARK = /\[redacted: [a-z0-9 .]{1,32}\]/g;

/**
 * Text as it may be kept and shown: whatever looks like a secret, or stands behind the name of one, is
 * replaced by a mark that says what stood there. Takes time in proportion to the text; twice is as once.
 */
export function redact(text: string): string {
  if (text.length < LENGTH_MIN) return text;
  const { all } = secretsIn(text, null);
  return all.length === 0 ? text : shownPart(text, all, { from: 0, to: text.length });
}

/** A part of a text, with marks in place of its secrets. */
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
 * All that `HINT` and `LEADS` name: without any of it nothing is given away by what stands before it. Every string
 * comes here, so it is one look, and written so that a letter which begins none of them is passed at once.
 */
export const GIVEN_AWAY =
  /p(?:ass|wd)|s(?:ecret|ig(?:nature)?=)|token|key|c(?:red|ookie|url)|auth|m(?:nemonic|ysql|ariadb)|jwt|_p(?:w|at)|bearer|identified|redis-cli|login|ngrok|sql(?:plus|ldr)|expdp|impdp|rman/i;

/** All secrets of a text, and the marks that stand in it already. `tail` is told what may still go on. */
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

/** Most texts have none, and finding that out must cost little: every string that is kept comes here. */
function marksIn(text: string): Secret[] {
  if (!text.includes("[redacted: ")) return [];
  const found = [...text.matchAll(MARK)];
  return found.map(({ index, 0: mark }) => ({ start: index, end: index + mark.length, kind: null }));
}

/** How much more is read than kept, because a secret that was hidden leaves room. */
const READ_AHEAD = 8;

/** The first characters of a text, without secrets: a secret that is cut no longer looks like one. */
export function excerpt(text: string, max: number): string {
  // Cut before it is searched: a prompt may have megabytes.
  return firstChars(redact(text.slice(0, READ_AHEAD * max)), max);
}
