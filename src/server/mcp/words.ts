import { randomBytes } from "node:crypto";
import { shortId } from "../../contract/short-id.ts";
import { firstBytes } from "../../text/cut.ts";
import { fence } from "../../text/fence.ts";
import { byteLength, shownPart } from "../../text/quantity.ts";

/** Text of another session in its fence; a text that was cut says so below it. */
export function fenced(text: string, id: string, bytesMax: number): string {
  const { text: block, cut, bytes } = fence(text, id, bytesMax);
  return cut ? `${block}\n[${shownPart(bytesMax, bytes)}]` : block;
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
  if (byteLength(text) <= bytesMax) return text;
  return firstBytes(text, bytesMax - byteLength(mark)) + mark;
}

/** Cuts a child's report inside its fence and keeps the fence whole: an open fence would swallow what follows. */
export function fitBlock(block: string, bytesMax: number, rest: string): string {
  const bytes = byteLength(block);
  if (bytes <= bytesMax) return block;
  const fenceAt = block.lastIndexOf("\n</child-output id=");
  if (fenceAt === -1) return shorten(block, bytesMax, " [cut]");
  const close = block.slice(fenceAt).split("\n").slice(0, 2).join("\n");
  const mark = `${close}\n[${shownPart(bytesMax, bytes)}; the rest: ${rest}]`;
  return shorten(block.slice(0, fenceAt), bytesMax, mark);
}

/** What each of n results may take of one reply. */
export function shareOf(count: number): number {
  return Math.min(RESULT_BYTES_MAX, Math.floor(RESULTS_BYTES_MAX / Math.max(1, count)));
}

/** All results of one reply share this; the rest is for line 1, names and the next step. */
const RESULTS_BYTES_MAX = 20 * 1024;
const RESULT_BYTES_MAX = 4 * 1024;
