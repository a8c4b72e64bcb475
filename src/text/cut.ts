/** Where a text may be cut at or before `at`: never between the two halves of a character. */
export function cutBefore(text: string, at: number): number {
  return at > 0 && isHalf(text.charCodeAt(at), 0xdc00) && isHalf(text.charCodeAt(at - 1), 0xd800)
    ? at - 1
    : at;
}

/** The longest beginning of at most this many UTF-16 units that ends at a code point. */
export function firstChars(text: string, max: number): string {
  return text.length <= max ? text : text.slice(0, cutBefore(text, Math.max(0, max)));
}

/** The longest beginning of at most this many bytes that ends at a code point. */
export function firstBytes(text: string, bytesMax: number): string {
  const room = new Uint8Array(Math.max(0, bytesMax));
  return text.slice(0, encoder.encodeInto(text, room).read);
}

/** White space folded to single spaces. */
export function folded(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** One line of at most this many characters; an ellipsis shows that it was cut. */
export function shortLine(text: string, max: number): string {
  // Text far behind the cut is not worth the work: it may have megabytes.
  const line = folded(text.slice(0, max * READ_AHEAD));
  return line.length <= max ? line : `${firstChars(line, max - 1)}…`;
}

/** The beginning of a text, with a note of how much is missing. */
export function boundedText(text: string, max: number): string {
  if (text.length <= max) return text;
  const head = firstChars(text, max);
  return `${head}… (${text.length - head.length} characters more)`;
}

function isHalf(unit: number, kind: 0xd800 | 0xdc00): boolean {
  return (unit & 0xfc00) === kind;
}

const READ_AHEAD = 4;
const encoder = new TextEncoder();
