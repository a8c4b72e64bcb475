import { asObject, type JsonObject } from "./value.ts";

/** Commas, colons and opening brackets in one text. This many take about 50 MB as objects. */
const VALUES_MAX = 500_000;

export class TooManyValues extends Error {
  override readonly name = "TooManyValues";

  constructor() {
    super(`longer than ${VALUES_MAX} values`);
  }
}

/**
 * Like `JSON.parse`, for untrusted text. A text like `[[],[],[]]` takes up to 30 times its length as objects,
 * and running out of memory inside `JSON.parse` ends the whole process. So such a text is refused unparsed.
 */
export function parseJson(text: string): unknown {
  if (hasTooManyValues(text)) throw new TooManyValues();
  return JSON.parse(text) as unknown;
}

/** Returns null if the text is not a JSON object. */
export function parsedObject(text: string): JsonObject | null {
  // Most texts are not JSON, and a failed parse is expensive.
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
