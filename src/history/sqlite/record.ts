import type { Pages } from "./pages.ts";

export type Value = string | number | Buffer | null;

/** A row's content: its beginning in a page, the rest in a chain of overflow pages. */
export interface Payload {
  readonly bytes: number;
  readonly local: Buffer;
  /** The first overflow page; 0 when there is none. */
  readonly overflow: number;
}

/** A longer value is not read. */
const VALUE_BYTES_MAX = 64 * 1024 * 1024;
const HEADER_BYTES_MAX = 64 * 1024;

/** Each value is read from the disk only when it is requested. */
export class Row {
  readonly #pages: Pages;
  readonly #payload: Payload;
  readonly #types: number[] = [];
  readonly #starts: number[] = [];

  constructor(pages: Pages, payload: Payload) {
    this.#pages = pages;
    this.#payload = payload;
    const [headerBytes, first] = varint(payload.local, 0);
    if (headerBytes > Math.min(payload.bytes, HEADER_BYTES_MAX))
      throw new Error("a row's header is too long");
    const header = this.#bytes(0, headerBytes);
    let start = headerBytes;
    for (let at = first; at < headerBytes;) {
      const [type, next] = varint(header, at);
      this.#types.push(type);
      this.#starts.push(start);
      start += bytesOf(type);
      at = next;
    }
  }

  get length(): number {
    return this.#types.length;
  }

  /** Returns null also for a column that was added to the table after the row was written. */
  value(column: number): Value {
    const type = this.#types[column];
    if (type === undefined || type === 0) return null;
    if (type === 8 || type === 9) return type - 8;
    const bytes = this.raw(column);
    if (type === 7) return bytes.readDoubleBE(0);
    if (type < 7)
      return bytes.length === 8 ? Number(bytes.readBigInt64BE(0)) : bytes.readIntBE(0, bytes.length);
    return type % 2 === 1 ? bytes.toString("utf8") : bytes;
  }

  isText(column: number): boolean {
    const type = this.#types[column] ?? 0;
    return type >= 13 && type % 2 === 1;
  }

  bytesOf(column: number): number {
    return bytesOf(this.#types[column] ?? 0);
  }

  raw(column: number): Buffer {
    const start = this.#starts[column] ?? 0;
    const bytes = this.bytesOf(column);
    if (bytes > VALUE_BYTES_MAX) throw new Error(`a value of ${bytes} bytes is too large`);
    return this.#bytes(start, start + bytes);
  }

  #bytes(start: number, end: number): Buffer {
    const { local, bytes } = this.#payload;
    if (end > bytes) throw new Error("a row is truncated");
    return end <= local.length ? local.subarray(start, end) : this.#gathered(start, end);
  }

  #gathered(start: number, end: number): Buffer {
    const { local, overflow } = this.#payload;
    const gathered = Buffer.allocUnsafe(end - start);
    local.copy(gathered, 0, Math.min(start, local.length));
    let at = local.length;
    for (let next = overflow; at < end;) {
      const page = this.#pages.passing(next);
      const content = page.subarray(4, this.#pages.usableBytes);
      const from = Math.max(0, start - at);
      const to = Math.min(content.length, end - at);
      if (from < to) content.copy(gathered, Math.max(0, at - start), from, to);
      at += content.length;
      next = page.readUInt32BE(0);
    }
    return gathered;
  }
}

function bytesOf(type: number): number {
  if (type >= 12) return (type - (type % 2 === 0 ? 12 : 13)) / 2;
  return INTEGER_BYTES[type] ?? 0;
}

const INTEGER_BYTES = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0];

/** Decodes a number of one to nine bytes; also returns the offset after it. */
export function varint(bytes: Buffer, at: number): [value: number, next: number] {
  let value = 0;
  for (let index = 0; index < 8; index += 1) {
    const byte = bytes[at + index];
    if (byte === undefined) throw new Error("a number is truncated");
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) return [value, at + index + 1];
  }
  const last = bytes[at + 8];
  if (last === undefined) throw new Error("a number is truncated");
  return [Number(BigInt.asIntN(64, BigInt(value) * 256n + BigInt(last))), at + 9];
}
