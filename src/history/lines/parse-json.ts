import { asObject, type JsonObject } from "./value.ts";

/**
 * The maximum number of commas, colons and opening brackets in one text. A text with this many needs about 50
 * MB when it is parsed.
 */
const VALUES_MAX = 500_000;

/**
 * Returns the object that an untrusted text encodes, or the reason why there is none. Parsing a text like
 * `[[],[],[]]` needs up to 30 times its length in memory, and running out of memory inside `JSON.parse` ends
 * the whole process. So a text with too many values is refused before it is parsed.
 */
export function objectOrReason(text: string): JsonObject | string {
  if (hasTooManyValues(text)) return `longer than ${VALUES_MAX} values`;
  try {
    return asObject(JSON.parse(text)) ?? "is not a JSON object";
  } catch {
    return "is not JSON";
  }
}

/** Returns null if the text is not a JSON object. */
export function parsedObject(text: string): JsonObject | null {
  // Most texts are not JSON, and a failed parse is expensive.
  return /^\s*\{/u.test(text) ? asObject(objectOrReason(text)) : null;
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
