import { asObject, type JsonObject } from "../../lines/value.ts";
import { bytes as byteWords } from "../../../text/quantity.ts";
import { objectOrReason } from "../../lines/parse-json.ts";
import type { BadLine } from "../../port.ts";

export interface SessionRecord {
  readonly id: string;
  readonly parentId: string | null;
  readonly title: string | null;
  readonly directory: string | null;
  readonly version: string | null;
  /** The agent in OpenCode's sense: the kind of sub-agent. */
  readonly agent: string | null;
  readonly createdAt: number | null;
  /** The message to which the session was reverted. Set only while the revert can be undone. */
  readonly revertId: string | null;
}

export interface Message {
  readonly id: string;
  readonly data: JsonObject;
  readonly parts: readonly Part[];
  readonly bad: readonly BadLine[];
  readonly bytes: number;
}

export interface Part {
  readonly id: string;
  readonly data: JsonObject;
  readonly createdAt: number | null;
}

/** One session's messages, in a database or in a tree of files. */
export interface Source {
  session(): Promise<SessionRecord | null>;
  messageIds(): Promise<readonly string[]>;
  /** Returns null when the message is gone. */
  message(id: string): Promise<Message | null>;
  /** Returns a message's role. Cheaper than reading the whole message. */
  roleOf(id: string): Promise<string | null>;
  /** The session will never be written again, so its unfinished messages are final. */
  readonly isFrozen: boolean;
  /** Whether everything read so far is consistent. If not, the source has reopened itself; read it again. */
  settled(): Promise<boolean>;
  close(): void;
}

/** Returns the object in a text, or the reason why there is none. */
export function parsedRecord(
  text: string | null,
  bytes: number,
  recordBytesMax: number,
): JsonObject | string {
  if (bytes > recordBytesMax) return `longer than ${byteWords(recordBytesMax)}`;
  return text === null ? "holds nothing" : objectOrReason(text);
}

export function badRecord(name: string, reason: string): BadLine {
  return { line: null, byteOffset: null, reason: `${name} ${reason}` };
}

/** Returns when a part began and ended. */
export function timesOf(data: JsonObject): JsonObject | null {
  return asObject(asObject(data["state"])?.["time"]) ?? asObject(data["time"]);
}

const PARTS_MAX = 10_000;

/** Limits the memory of one message. Its parts together may have at most as many bytes as one record. */
export class PartBudget {
  readonly #bytesMax: number;
  #bytes = 0;
  #count = 0;

  constructor(recordBytesMax: number) {
    this.#bytesMax = recordBytesMax;
  }

  /** A part that alone exceeds the budget is skipped, so its bytes are not counted. */
  hasRoom(bytes: number): boolean {
    this.#count += 1;
    if (bytes <= this.#bytesMax) this.#bytes += bytes;
    return this.#count <= PARTS_MAX && this.#bytes <= this.#bytesMax;
  }

  why(part: string): string {
    const megabytes = Math.round(this.#bytesMax / 1024 / 1024);
    return `longer than ${megabytes} MB or ${PARTS_MAX} parts: it is read up to ${part} only`;
  }
}

/** Returns how many of these sorted ids are less than or equal to `id`. */
export function countUpTo(ids: readonly string[], id: string): number {
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] as string) <= id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** OpenCode's ids sort in order of creation. */
export function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
