import { bytes } from "../../text/quantity.ts";
import { hash } from "node:crypto";
import { type ByteFile, type OpenBytes, openBytes, readFully } from "./byte-file.ts";
import { UnfinishedLine } from "./unfinished-line.ts";
import { objectOrReason } from "./parse-json.ts";
import type { BadLine, ReadBatch } from "../port.ts";
import type { JsonObject } from "./value.ts";

export interface Row {
  readonly value: JsonObject;
  readonly line: number;
  readonly offset: number;
}

/** Where reading stopped. If inode and hash of the bytes before it still match, the file has only grown. */
export interface LinePosition {
  readonly identity: string;
  readonly offset: number;
  /** The number of newlines before `offset`. */
  readonly line: number;
  readonly check: string;
  /** The position is in the middle of a line that is too long and was already counted as bad. */
  readonly skipping: boolean;
}

/** A row or a bad line, read backwards from the end of the file. Its line number is not known. */
type BackRow = Row | { readonly bad: true; readonly offset: number };

interface RowChunk extends Pick<ReadBatch, "reset" | "bad" | "badCount"> {
  /** True when there is nothing more to read now. */
  readonly isLast: boolean;
  readonly rows: readonly Row[];
  readonly position: LinePosition;
}

interface LineOptions {
  readonly lineBytesMax: number;
  readonly chunkBytes: number;
  readonly open?: OpenBytes;
  readonly signal?: AbortSignal | undefined;
}

export const LINE_BYTES_MAX = 32 * 1024 * 1024;
export const CHUNK_BYTES = 512 * 1024;
const CHECK_BYTES = 1024;
/** At most this many bad lines of a chunk are listed. All of them are counted. */
const BAD_NAMED_MAX = 20;

/**
 * Reads a JSON Lines file from a position on, one chunk at a time. Yields at least one chunk. A last line
 * without a newline may still be incomplete, so it is used only if it is a complete object.
 */
export async function* readRows(
  path: string,
  from: LinePosition | null,
  options: LineOptions,
): AsyncGenerator<RowChunk> {
  const file = await (options.open ?? openBytes)(path);
  try {
    const kept = from !== null && (await isSame(file, from)) ? from : null;
    const scan = new LineScan(file.identity, kept, options.lineBytesMax);
    if (kept !== null) scan.tail = await tailBefore(file, kept.offset);
    yield* chunks(file, scan, { ...options, reset: from !== null && kept === null });
  } finally {
    await file.close();
  }
}

/** Reads the lines before an offset (null: the end of the file), last line first. */
export async function* readRowsBack(
  path: string,
  beforeOffset: number | null,
  options: LineOptions,
): AsyncGenerator<BackRow> {
  const file = await (options.open ?? openBytes)(path);
  try {
    let end = Math.min(beforeOffset ?? file.sizeBytes, file.sizeBytes);
    let later: Buffer[] = [];
    let laterBytes = 0;
    let isTorn = beforeOffset === null;
    while (end > 0) {
      const start = Math.max(0, end - options.chunkBytes);
      const buffer = Buffer.allocUnsafe(end - start);
      const bytes = buffer.subarray(0, await readFully(file, buffer, start));
      let stop = bytes.length;
      for (let at = lastNewline(bytes, stop); at >= 0; at = lastNewline(bytes, stop)) {
        const isHeld = laterBytes + stop - at - 1 <= options.lineBytesMax;
        if (isHeld) yield* rowBack(joined([bytes.subarray(at + 1, stop), ...later]), start + at + 1, isTorn);
        isTorn = false;
        [later, laterBytes, stop] = [[], 0, at];
      }
      const rest = bytes.subarray(0, stop);
      laterBytes += rest.length;
      later = laterBytes > options.lineBytesMax ? [] : [rest, ...later];
      end = start;
    }
    if (laterBytes <= options.lineBytesMax) yield* rowBack(joined(later), 0, isTorn);
  } finally {
    await file.close();
  }
}

async function* chunks(
  file: ByteFile,
  scan: LineScan,
  options: LineOptions & { reset: boolean },
): AsyncGenerator<RowChunk> {
  const buffer = Buffer.allocUnsafe(Math.max(options.chunkBytes, 1));
  let reset = options.reset;
  let isFirst = true;
  let reading = readNext(file, buffer, scan);
  try {
    for (;;) {
      options.signal?.throwIfAborted();
      const [read] = await reading;
      if (read.status === "rejected") throw read.reason;
      const count = read.value;
      if (count > 0) scan.take(buffer.subarray(0, count));
      else scan.takeTorn();
      const isLast = count === 0;
      // The scan keeps no reference into the buffer, so the buffer can be refilled while this chunk is
      // processed.
      if (!isLast) reading = readNext(file, buffer, scan);
      if (isFirst || isLast || scan.hasNews) yield { reset, isLast, ...scan.give() };
      if (isLast) return;
      [reset, isFirst] = [false, false];
    }
  } finally {
    await reading;
  }
}

/** Never rejects: `chunks` handles a failed read when it reaches that chunk. */
function readNext(file: ByteFile, buffer: Buffer, scan: LineScan): Promise<[PromiseSettledResult<number>]> {
  return Promise.allSettled([file.read(buffer, scan.readTo)]);
}

/** Turns bytes into rows. Keeps at most one incomplete line in memory. */
class LineScan {
  readonly #rows: Row[] = [];
  readonly #bad: BadLine[] = [];
  readonly #identity: string;
  readonly #lineBytesMax: number;
  readonly #held: UnfinishedLine;
  #badCount = 0;
  #offset: number;
  #line: number;
  #skipping: boolean;
  /** The last bytes before `#offset`. */
  tail: Buffer = Buffer.alloc(0);

  constructor(identity: string, from: LinePosition | null, lineBytesMax: number) {
    this.#identity = identity;
    this.#lineBytesMax = lineBytesMax;
    this.#held = new UnfinishedLine(lineBytesMax);
    this.#offset = from?.offset ?? 0;
    this.#line = from?.line ?? 0;
    this.#skipping = from?.skipping ?? false;
  }

  get readTo(): number {
    return this.#offset + this.#held.length;
  }

  get hasNews(): boolean {
    return this.#rows.length > 0 || this.#badCount > 0;
  }

  take(bytes: Buffer): void {
    let start = 0;
    for (let end = bytes.indexOf(10, start); end >= 0; end = bytes.indexOf(10, start)) {
      if (start === 0) this.tail = lastOf(this.tail, this.#held.bytes);
      const lengthBytes = this.#held.length + end + 1 - start;
      this.#endLine(bytes.subarray(start, end));
      this.#offset += lengthBytes;
      this.#line += 1;
      this.#held.drop();
      start = end + 1;
    }
    if (start > 0) this.tail = lastOf(this.tail, bytes.subarray(0, start));
    if (start < bytes.length) this.#hold(bytes.subarray(start));
  }

  /** Uses the text after the last newline if it is a complete object. */
  takeTorn(): void {
    if (this.#held.length === 0) return;
    const bytes = this.#held.bytes;
    const value = parsed(trimmed(bytes, this.#offset));
    if (typeof value === "string") return;
    this.#rows.push({ value, line: this.#line + 1, offset: this.#offset });
    this.tail = lastOf(this.tail, bytes);
    this.#offset += bytes.length;
    this.#held.drop();
  }

  give(): Omit<RowChunk, "reset" | "isLast"> {
    const position: LinePosition = {
      identity: this.#identity,
      offset: this.#offset,
      line: this.#line,
      check: checkOf(this.tail),
      skipping: this.#skipping,
    };
    const badCount = this.#badCount;
    this.#badCount = 0;
    return { rows: this.#rows.splice(0), bad: this.#bad.splice(0), badCount, position };
  }

  #endLine(end: Buffer): void {
    if (this.#skipping) {
      this.#skipping = false;
      return;
    }
    if (this.#held.length + end.length > this.#lineBytesMax) {
      this.#refuse(this.#tooLong());
      return;
    }
    if (this.#held.length > 0) this.#held.add(end);
    const line = trimmed(this.#held.length > 0 ? this.#held.bytes : end, this.#offset);
    if (line.length === 0) return;
    const value = parsed(line);
    if (typeof value === "string") this.#refuse(value);
    else this.#rows.push({ value, line: this.#line + 1, offset: this.#offset });
  }

  #hold(bytes: Buffer): void {
    if (!this.#skipping && this.#held.length + bytes.length > this.#lineBytesMax) {
      this.#refuse(this.#tooLong());
      this.#skipping = true;
      this.tail = lastOf(this.tail, this.#held.bytes);
      this.#offset += this.#held.length;
      this.#held.drop();
    }
    if (this.#skipping) {
      this.tail = lastOf(this.tail, bytes);
      this.#offset += bytes.length;
      return;
    }
    this.#held.add(bytes);
  }

  #tooLong(): string {
    return `longer than ${bytes(this.#lineBytesMax)}`;
  }

  #refuse(reason: string): void {
    this.#badCount += 1;
    if (this.#bad.length >= BAD_NAMED_MAX) return;
    this.#bad.push({ line: this.#line + 1, byteOffset: this.#offset, reason });
  }
}

/** Returns the object in a line, or the reason why there is none. */
function parsed(line: Buffer): JsonObject | string {
  const value = line[0] === BRACE ? objectOrReason(line.toString("utf8")) : "is not a JSON object";
  return typeof value === "string" && line.includes(0) ? "holds NUL bytes" : value;
}

const BRACE = 0x7b;

/** Strips a byte order mark, white space, and NUL bytes, which a crash may leave behind. */
function trimmed(bytes: Buffer, offset: number): Buffer {
  let start = 0;
  let end = bytes.length;
  if (offset === 0 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) start = 3;
  while (start < end && isPadding(bytes[start])) start += 1;
  while (end > start && isPadding(bytes[end - 1])) end -= 1;
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}

function isPadding(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0d || byte === 0x09 || byte === 0;
}

function* rowBack(bytes: Buffer, offset: number, isTorn: boolean): Generator<BackRow> {
  const line = trimmed(bytes, offset);
  if (line.length === 0) return;
  const value = parsed(line);
  if (isTorn && typeof value === "string") return;
  yield typeof value === "string" ? { bad: true, offset } : { value, line: 0, offset };
}

async function isSame(file: ByteFile, from: LinePosition): Promise<boolean> {
  if (file.identity !== from.identity || file.sizeBytes < from.offset) return false;
  return checkOf(await tailBefore(file, from.offset)) === from.check;
}

async function tailBefore(file: ByteFile, offset: number): Promise<Buffer> {
  const start = Math.max(0, offset - CHECK_BYTES);
  const buffer = Buffer.alloc(offset - start);
  return buffer.subarray(0, await readFully(file, buffer, start));
}

function lastOf(...parts: Buffer[]): Buffer {
  const taken: Buffer[] = [];
  let missing = CHECK_BYTES;
  for (let index = parts.length - 1; index >= 0 && missing > 0; index -= 1) {
    const part = parts[index] as Buffer;
    const end = part.length > missing ? part.subarray(part.length - missing) : part;
    taken.unshift(end);
    missing -= end.length;
  }
  return Buffer.concat(taken);
}

function checkOf(tail: Buffer): string {
  return hash("sha1", tail, "base64");
}

function joined(parts: readonly Buffer[]): Buffer {
  return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
}

function lastNewline(bytes: Buffer, before: number): number {
  return before === 0 ? -1 : bytes.lastIndexOf(10, before - 1);
}
