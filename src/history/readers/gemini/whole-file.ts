import { stat } from "node:fs/promises";
import { type ByteFile, openBytes } from "../../lines/byte-file.ts";

/**
 * Opens a file that is one JSON object as if it were a file of lines. The first line has the fields before
 * the list of messages. Then each message is one line. The last line has the fields after the list. Every
 * byte keeps its offset. Only bytes between messages are changed, so only the start and end of each message
 * are held in memory.
 *
 * Gemini CLI rewrites the whole file at every change, so a changed file gets a new `identity`.
 */
export async function openWhole(path: string): Promise<ByteFile> {
  const file = await openBytes(path);
  try {
    const { mtimeMs } = await stat(path);
    const shape = await shapeOf(file);
    if (shape === null) throw new Error("it has no list of messages");
    return {
      identity: `${file.identity}:${file.sizeBytes}:${mtimeMs}`,
      sizeBytes: file.sizeBytes,
      close: () => file.close(),
      async read(into, offset) {
        const count = await file.read(into, offset);
        asLines(into.subarray(0, count), offset, shape);
        return count;
      },
    };
  } catch (error) {
    await file.close();
    throw error;
  }
}

interface Shape {
  /** The offset of the comma before `"messages"`, where the first line ends; -1 when the list comes first. */
  headEnd: number;
  /** The offset of each message; `ends` has the offset after it. The last message may have no end. */
  readonly starts: number[];
  readonly ends: number[];
  /** The offset of the comma after the list, where the last line begins. */
  tailStart: number;
}

const [QUOTE, BACKSLASH, COMMA, NEWLINE, SPACE] = [0x22, 0x5c, 0x2c, 0x0a, 0x20];
const [OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, RETURN] = [0x7b, 0x7d, 0x5b, 0x5d, 0x0d];
const NAME = "messages";
/** The limit is needed because the position of every message is held in memory. */
const MESSAGES_MAX = 250_000;
const CHUNK_BYTES = 256 * 1024;

async function shapeOf(file: ByteFile): Promise<Shape | null> {
  const scan = new Scan();
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let offset = 0; ;) {
    const count = await file.read(buffer, offset);
    if (count === 0) break;
    for (let index = 0; index < count; index += 1) scan.take(buffer[index] as number, offset + index);
    offset += count;
  }
  return scan.hasList ? scan.shape : null;
}

/** Reads each byte once. Remembers the nesting depth, whether a string is open, and the list's offsets. */
class Scan {
  readonly shape: Shape = { headEnd: -1, starts: [], ends: [], tailStart: -1 };
  #depth = 0;
  #isText = false;
  #isEscaped = false;
  /** The last string at the object's top level. A string too long to be the list's name is cut. */
  #word = "";
  #comma = -1;
  #list: "before" | "in" | "after" = "before";

  get hasList(): boolean {
    return this.#list !== "before";
  }

  take(byte: number, at: number): void {
    if (this.#isText) {
      this.#takeText(byte);
      return;
    }
    switch (byte) {
      case QUOTE:
        this.#isText = true;
        this.#word = "";
        return;
      case OPEN:
        if (this.#list === "in" && this.#depth === 2) this.#begin(at);
        this.#depth += 1;
        return;
      case OPEN_LIST:
        if (this.#list === "before" && this.#depth === 1 && this.#word === NAME) {
          this.#list = "in";
          this.shape.headEnd = this.#comma;
        }
        this.#depth += 1;
        return;
      case CLOSE:
        this.#depth -= 1;
        if (this.#list === "in" && this.#depth === 2) this.shape.ends.push(at + 1);
        return;
      case CLOSE_LIST:
        this.#depth -= 1;
        if (this.#list === "in" && this.#depth === 1) this.#list = "after";
        return;
      case COMMA:
        if (this.#depth !== 1) return;
        this.#comma = at;
        if (this.#list === "after" && this.shape.tailStart < 0) this.shape.tailStart = at;
        return;
      default:
    }
  }

  #begin(at: number): void {
    if (this.shape.starts.length === MESSAGES_MAX)
      throw new Error(`it has more than ${MESSAGES_MAX} messages`);
    this.shape.starts.push(at);
  }

  #takeText(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) this.#isText = false;
    else if (this.#depth === 1 && this.#word.length <= NAME.length) this.#word += String.fromCharCode(byte);
  }
}

/** Turns bytes that were read at `offset` into lines, in place. */
function asLines(bytes: Buffer, offset: number, shape: Shape): void {
  let next = firstAfter(shape.ends, offset);
  for (let index = 0; index < bytes.length; index += 1) {
    const at = offset + index;
    while (at > (shape.ends[next] ?? Number.POSITIVE_INFINITY)) next += 1;
    bytes[index] = byteAt(bytes[index] as number, at, { shape, next });
  }
}

function byteAt(byte: number, at: number, { shape, next }: { shape: Shape; next: number }): number {
  const { headEnd, starts, ends, tailStart } = shape;
  if (at < headEnd) return inLine(byte);
  if (at === headEnd) return CLOSE;
  if (at === headEnd + 1) return NEWLINE;
  const start = starts[next];
  if (start !== undefined && at >= start) return at === ends[next] ? NEWLINE : inLine(byte);
  if (tailStart < 0 || at < tailStart - 1) return SPACE;
  if (at === tailStart - 1) return NEWLINE;
  return at === tailStart ? OPEN : inLine(byte);
}

function inLine(byte: number): number {
  return byte === NEWLINE || byte === RETURN ? SPACE : byte;
}

/** Returns the index of the first end at or after this offset. */
function firstAfter(ends: readonly number[], offset: number): number {
  let [low, high] = [0, ends.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ends[middle] as number) < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
