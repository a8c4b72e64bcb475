import { bytes as byteWords } from "../../../text/quantity.ts";
import type { JsonObject } from "../../lines/json-lines.ts";
import { parseJson, TooManyValues } from "../../lines/parse-json.ts";
import type { BadLine } from "../../port.ts";

/** What a session's own record says about it, wherever it stands. */
export interface SessionRecord {
  readonly id: string;
  readonly parentId: string | null;
  readonly title: string | null;
  readonly directory: string | null;
  readonly version: string | null;
  /** The agent, in OpenCode's sense: what kind of sub-agent it is. */
  readonly agent: string | null;
  readonly createdAt: number | null;
  /** The message that the session was taken back to before, while that can be undone. */
  readonly revertId: string | null;
}

export interface Message {
  readonly id: string;
  readonly data: JsonObject;
  readonly parts: readonly Part[];
  /** What of it could not be used. */
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
  /** Null when the session is gone. */
  session(): Promise<SessionRecord | null>;
  /** In their order. */
  messageIds(): Promise<readonly string[]>;
  /** Null when it is gone, or cannot be used at all. */
  message(id: string): Promise<Message | null>;
  /** Only who said it: cheaper than the message. */
  roleOf(id: string): Promise<string | null>;
  /** Whether nothing of it will be written any more: then what looks unfinished is as finished as it gets. */
  readonly isFrozen: boolean;
  /** Whether what was read so far belongs together. If not, it is opened anew, and has to be read again. */
  settled(): Promise<boolean>;
  close(): void;
}

export interface SourceLimits {
  /** A longer record is not held. */
  readonly recordBytesMax: number;
}

/** The object a text holds, or why it holds none. */
export function parsedRecord(
  text: string | null,
  bytes: number,
  { recordBytesMax }: SourceLimits,
): JsonObject | string {
  if (bytes > recordBytesMax) return `longer than ${byteWords(recordBytesMax)}`;
  if (text === null) return "holds nothing";
  try {
    const value = parseJson(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as JsonObject) : "is not a JSON object";
  } catch (error) {
    return error instanceof TooManyValues ? error.message : "is not JSON";
  }
}

const PARTS_MAX = 10_000;

/** How much of a message is held. Its parts are held together: all of them may be no longer than one record. */
export class PartBudget {
  readonly #bytesMax: number;
  #bytes = 0;
  #count = 0;

  constructor({ recordBytesMax }: SourceLimits) {
    this.#bytesMax = recordBytesMax;
  }

  /** A part that is too long by itself takes no room: it is not held. */
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

/** How many of these ids, which are in their order, are this one or come before it. */
export function countUpTo(ids: readonly string[], id: string): number {
  let [low, high] = [0, ids.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ids[middle] as string) <= id) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** OpenCode's ids are made to be ordered by. */
export function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
