import { readSync } from "node:fs";

/** The contents of a write-ahead log up to its last complete commit. */
export interface Wal {
  readonly salts: string;
  readonly pageBytes: number;
  /** For each page, the offset of its newest content in the log. */
  readonly frames: ReadonlyMap<number, number>;
  readonly pageCount: number;
}

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const CHUNK_BYTES = 1024 * 1024;

interface Header {
  readonly salts: string;
  readonly pageBytes: number;
  readonly isLittle: boolean;
  readonly sums: Sums;
}
type Sums = readonly [number, number];

/** Returns null when the log contains no commit. The database file alone then has all the content. */
export function readWal(file: number): Wal | null {
  const header = walHeader(file);
  if (header === null) return null;
  const { salts, pageBytes } = header;
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  const frames = new Map<number, number>();
  const uncommitted = new Map<number, number>();
  let pageCount = 0;
  let sums = header.sums;
  const wal = (): Wal | null => (pageCount === 0 ? null : { salts, pageBytes, frames, pageCount });
  const chunk = Buffer.allocUnsafeSlow(frameBytes * Math.max(1, Math.floor(CHUNK_BYTES / frameBytes)));
  for (let offset = HEADER_BYTES; ;) {
    const count = readSync(file, chunk, 0, chunk.length, offset);
    const whole = Math.floor(count / frameBytes);
    for (let index = 0; index < whole; index += 1) {
      const frame = chunk.subarray(index * frameBytes, (index + 1) * frameBytes);
      const next = checked(frame, header, sums);
      if (next === null) return wal();
      sums = next;
      uncommitted.set(frame.readUInt32BE(0), offset + index * frameBytes + FRAME_HEADER_BYTES);
      const committed = frame.readUInt32BE(4);
      if (committed === 0) continue;
      pageCount = committed;
      for (const [page, at] of uncommitted) frames.set(page, at);
      uncommitted.clear();
    }
    if (whole * frameBytes < chunk.length) return wal();
    offset += whole * frameBytes;
  }
}

export function walHeader(file: number): Header | null {
  const bytes = Buffer.alloc(HEADER_BYTES);
  if (readSync(file, bytes, 0, HEADER_BYTES, 0) < HEADER_BYTES) return null;
  const magic = bytes.readUInt32BE(0);
  if (magic !== 0x377f0682 && magic !== 0x377f0683) return null;
  const isLittle = magic === 0x377f0682;
  const sums: Sums = [bytes.readUInt32BE(24), bytes.readUInt32BE(28)];
  if (!isSame(sumUp(bytes.subarray(0, 24), isLittle, [0, 0]), sums)) return null;
  const pageBytes = bytes.readUInt32BE(8);
  if (pageBytes < 512 || pageBytes > 65_536 || (pageBytes & (pageBytes - 1)) !== 0) return null;
  return { salts: bytes.toString("hex", 16, 24), pageBytes, isLittle, sums };
}

/** Returns the checksums after a frame; null when the frame belongs to another log or is incomplete. */
function checked(frame: Buffer, { salts, isLittle }: Header, before: Sums): Sums | null {
  if (frame.toString("hex", 8, 16) !== salts) return null;
  const head = sumUp(frame.subarray(0, 8), isLittle, before);
  const sums = sumUp(frame.subarray(FRAME_HEADER_BYTES), isLittle, head);
  return isSame(sums, [frame.readUInt32BE(16), frame.readUInt32BE(20)]) ? sums : null;
}

function sumUp(bytes: Buffer, isLittle: boolean, [first, second]: Sums): Sums {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let [one, two] = [first, second];
  for (let at = 0; at < bytes.length; at += 8) {
    one = (one + view.getUint32(at, isLittle) + two) >>> 0;
    two = (two + view.getUint32(at + 4, isLittle) + one) >>> 0;
  }
  return [one, two];
}

function isSame(a: Sums, b: Sums): boolean {
  return a[0] === b[0] && a[1] === b[1];
}
