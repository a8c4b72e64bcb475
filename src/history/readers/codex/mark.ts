const ENDS_CHARS = 64;
const ITEMS_MAX = 32;
const DEPTH_MAX = 6;

/**
 * Returns a short hash that distinguishes different rows at the same position. Uses only the length,
 * beginning and end of each text, because it runs for every row and must be much cheaper than parsing.
 */
export function markOf(value: unknown): string {
  return (mixed(value, 0x811c9dc5, 0) >>> 0).toString(36);
}

function mixed(value: unknown, mark: number, depth: number): number {
  if (typeof value === "string") return mixedText(value, mark);
  if (typeof value === "number") return Math.imul(mark ^ (value | 0), 0x01000193);
  if (typeof value !== "object" || value === null)
    return Math.imul(mark ^ Number(value === true), 0x01000193);
  if (depth >= DEPTH_MAX) return mark;
  let all = mark;
  let count = 0;
  for (const item of Array.isArray(value) ? value : Object.values(value)) {
    if ((count += 1) > ITEMS_MAX) break;
    all = mixed(item, all, depth + 1);
  }
  return Math.imul(all ^ count, 0x01000193);
}

function mixedText(text: string, mark: number): number {
  let mix = Math.imul(mark ^ text.length, 0x01000193);
  const head = Math.min(text.length, ENDS_CHARS);
  for (let at = 0; at < head; at += 1) mix = Math.imul(mix ^ text.charCodeAt(at), 0x01000193);
  for (let at = Math.max(head, text.length - ENDS_CHARS); at < text.length; at += 1) {
    mix = Math.imul(mix ^ text.charCodeAt(at), 0x01000193);
  }
  return mix;
}
