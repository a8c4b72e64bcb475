import { closeSync, openSync, readSync } from "node:fs";
import { errorCode } from "../../../system/error.ts";

/**
 * The write-ahead log's shared index. It survives a killed process, so it proves what was committed. After a
 * crash of the machine it proves nothing.
 */
export interface WalIndex {
  /** How many frames of the log are committed. */
  readonly frames: number;
  /** How many of the committed frames were copied into the database. */
  readonly copied: number;
  /** Identifies this generation of the log; every frame carries it. */
  readonly salt: Buffer;
}

const INDEX_HEADER = 48;
const COPIED_AT = 96;
const LOG_HEADER = 32;
const FRAME_HEADER = 24;

/** Returns null if there is no index, or SQLite did not finish writing it. */
export function readWalIndex(path: string): WalIndex | null {
  const head = Buffer.alloc(COPIED_AT + 4);
  if (readIfThere(`${path}-shm`, (file) => readSync(file, head)) !== head.length) return null;
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
 * Counts the intact frames from the beginning of the log, up to `max`. SQLite reads up to the first damaged
 * frame and silently ignores everything after it.
 */
export function wholeFrames(path: string, { salt, frames: max }: WalIndex): number {
  return readIfThere(`${path}-wal`, (file) => countFrames(file, salt, max)) ?? 0;
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

/** SQLite's checksum: a running sum over pairs of words, in the log's byte order. */
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

/** Returns null if there is no such file. */
function readIfThere<T>(path: string, read: (file: number) => T): T | null {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return null;
    throw error;
  }
  try {
    return read(file);
  } finally {
    closeSync(file);
  }
}
