import { randomBytes } from "node:crypto";
import { shortId } from "../../contract/short-id.ts";
import { fence } from "../../text/fence.ts";

/** "40 s", "6 min 12 s", "3 h 5 min", "2 days". */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** Text of another session in its fence; a text that was cut says so below it. */
export function fenced(text: string, id: string, bytesMax: number): string {
  const { text: block, cut, bytes } = fence(text, id, bytesMax);
  return cut ? `${block}\n[first ${inKilobytes(bytesMax)} of ${inKilobytes(bytes)} KB]` : block;
}

/** For a fence that is no delivery: nobody's message has this id. */
export function newNonce(): string {
  return randomBytes(4).toString("hex");
}

/** How a session is named to an agent. */
export function quoted(name: string | null, sessionId: string): string {
  return name === null ? shortId(sessionId) : `"${name}" (${shortId(sessionId)})`;
}

/** Cuts at a character border so that text and mark fit into the bytes. */
export function shorten(text: string, bytesMax: number, mark: string): string {
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length <= bytesMax) return text;
  let end = Math.max(0, bytesMax - Buffer.byteLength(mark));
  // 10xxxxxx continues a character, so the cut moves back to where one begins.
  while (end > 0 && ((bytes[end] ?? 0) & 0b1100_0000) === 0b1000_0000) end--;
  return bytes.subarray(0, end).toString("utf8") + mark;
}

/** Cuts a child's report inside its fence and keeps the fence whole: an open fence would swallow what follows. */
export function fitBlock(block: string, bytesMax: number, rest: string): string {
  const bytes = Buffer.byteLength(block);
  if (bytes <= bytesMax) return block;
  const fenceAt = block.lastIndexOf("\n</child-output id=");
  if (fenceAt === -1) return shorten(block, bytesMax, " [cut]");
  const close = block.slice(fenceAt).split("\n").slice(0, 2).join("\n");
  const mark = `${close}\n[first ${inKilobytes(bytesMax)} of ${inKilobytes(bytes)} KB; the rest: ${rest}]`;
  return shorten(block.slice(0, fenceAt), bytesMax, mark);
}

/** What each of n results may take of one reply. */
export function shareOf(count: number): number {
  return Math.min(RESULT_BYTES_MAX, Math.floor(RESULTS_BYTES_MAX / Math.max(1, count)));
}

/** All results of one reply share this; the rest is for line 1, names and the next step. */
const RESULTS_BYTES_MAX = 20 * 1024;
const RESULT_BYTES_MAX = 4 * 1024;

/** "812", "9.4k", "41k", "1.9M". */
export function tokensOf(count: number): string {
  if (count < 1_000) return String(count);
  const [value, unit] = count < 999_500 ? [count / 1_000, "k"] : [count / 1_000_000, "M"];
  return `${value < 9.95 ? Math.round(value * 10) / 10 : Math.round(value)}${unit}`;
}

export function inKilobytes(bytes: number): string {
  return `${Math.max(1, Math.round(bytes / 1024))}`;
}
