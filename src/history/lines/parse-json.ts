import type { JsonObject } from "./json-lines.ts";
import { asObject } from "./value.ts";

/** Commas, colons and opening brackets in one text: about 50 MB of objects at most. */
const VALUES_MAX = 500_000;

/** A text that would take too much memory as objects. */
export class TooManyValues extends Error {
  override readonly name = "TooManyValues";

  constructor() {
    super(`longer than ${VALUES_MAX} values`);
  }
}

/**
 * As `JSON.parse`, for a text that somebody else wrote. A text like `[[],[],[]]` takes up to 30 times its length
 * as objects, and memory that runs out in the middle of one `JSON.parse` ends the whole process, not only its
 * thread: such a text is refused before it is parsed.
 */
export function parseJson(text: string): unknown {
  if (hasTooManyValues(text)) throw new TooManyValues();
  return JSON.parse(text) as unknown;
}

/** The object that a text is, or null. */
export function parsedObject(text: string): JsonObject | null {
  // Most texts are no JSON, and failing to parse one costs more than everything else about it.
  if (!/^\s*\{/u.test(text)) return null;
  try {
    return asObject(parseJson(text));
  } catch {
    return null;
  }
}

const [QUOTE, BACKSLASH, COMMA, COLON, BRACE, BRACKET] = [0x22, 0x5c, 0x2c, 0x3a, 0x7b, 0x5b];

function hasTooManyValues(text: string): boolean {
  if (text.length <= VALUES_MAX) return false;
  let count = 0;
  let isText = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (isText && code === BACKSLASH) at += 1;
    else if (code === QUOTE) isText = !isText;
    else if (!isText && (code === COMMA || code === COLON || code === BRACE || code === BRACKET)) count += 1;
  }
  return count > VALUES_MAX;
}
