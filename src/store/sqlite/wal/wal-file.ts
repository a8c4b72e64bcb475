import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { errorCode } from "../../../system/error.ts";

/**
 * What the shared index of the write-ahead log says of it. The index outlives a process that is killed,
 * so that it is a witness of what had been committed; after the machine itself went down it is not.
 */
export interface WalIndex {
  /** How many frames of the log were committed. */
  readonly frames: number;
  /** How many of them had been copied into the database. */
  readonly copied: number;
  /** Names this run of the log; every frame carries it. */
  readonly salt: Buffer;
}

const INDEX_HEADER = 48;
const COPIED_AT = 96;
const LOG_HEADER = 32;
const FRAME_HEADER = 24;

/** Null where there is no index, or not one that SQLite finished writing. */
export function readWalIndex(path: string): WalIndex | null {
  const head = readStart(`${path}-shm`, COPIED_AT + 4);
  if (head === null || head.length < COPIED_AT + 4) return null;
  const first = head.subarray(0, INDEX_HEADER);
  if (!first.equals(head.subarray(INDEX_HEADER, 2 * INDEX_HEADER)) || first[12] !== 1) return null;
  const [a, b] = checksum(first.subarray(0, 40), [0, 0], "little");
  if (a !== first.readUInt32LE(40) || b !== first.readUInt32LE(44)) return null;
  return {
    frames: first.readUInt32LE(16),
    copied: head.readUInt32LE(COPIED_AT),
    salt: Buffer.from(first.subarray(32, 40)),
  };
}

/**
 * How many frames of the log are whole, from its beginning and at most `max`. SQLite itself reads up to the
 * first frame that is not, and passes over all behind it without a word.
 */
export function wholeFrames(path: string, { salt, frames: max }: WalIndex): number {
  let file: number;
  try {
    file = openSync(`${path}-wal`, "r");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return 0;
    throw error;
  }
  try {
    return countFrames(file, salt, Math.min(max, fstatSync(file).size));
  } finally {
    closeSync(file);
  }
}

function countFrames(file: number, salt: Buffer, max: number): number {
  const head = Buffer.alloc(LOG_HEADER);
  if (readSync(file, head, 0, LOG_HEADER, 0) < LOG_HEADER) return 0;
  const order = (head.readUInt32BE(0) & 1) === 1 ? "big" : "little";
  let sums = checksum(head.subarray(0, 24), [0, 0], order);
  if (!isSum(sums, head, 24) || !head.subarray(16, 24).equals(salt)) return 0;
  const pageBytes = head.readUInt32BE(8) || 65_536;
  const frame = Buffer.alloc(FRAME_HEADER + pageBytes);
  for (let count = 0; ; count += 1) {
    const at = LOG_HEADER + count * frame.length;
    if (count >= max || readSync(file, frame, 0, frame.length, at) < frame.length) return count;
    if (!frame.subarray(8, 16).equals(salt)) return count;
    sums = checksum(frame.subarray(0, 8), sums, order);
    sums = checksum(frame.subarray(FRAME_HEADER), sums, order);
    if (!isSum(sums, frame, 16)) return count;
  }
}

type Sums = readonly [number, number];

/** SQLite's own: a running sum over pairs of words, in the byte order that the log names. */
function checksum(bytes: Buffer, from: Sums, order: "big" | "little"): Sums {
  let [a, b] = from;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const isLittle = order === "little";
  for (let at = 0; at < bytes.length; at += 8) {
    a = (a + view.getUint32(at, isLittle) + b) >>> 0;
    b = (b + view.getUint32(at + 4, isLittle) + a) >>> 0;
  }
  return [a, b];
}

function isSum([a, b]: Sums, bytes: Buffer, at: number): boolean {
  return bytes.readUInt32BE(at) === a && bytes.readUInt32BE(at + 4) === b;
}

function readStart(path: string, length: number): Buffer | null {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
  try {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(file, bytes, 0, length, 0));
  } finally {
    closeSync(file);
  }
}
