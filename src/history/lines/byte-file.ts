import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { parsedObject } from "./parse-json.ts";
import type { JsonObject } from "./value.ts";

/** One open file, which may grow, shrink or vanish while it is read. */
export interface ByteFile {
  /** Changes when another file takes the same path. */
  readonly identity: string;
  readonly sizeBytes: number;
  /** Returns the number of bytes read, which may not fill the buffer. Returns 0 beyond the file's end. */
  read(into: Buffer, offset: number): Promise<number>;
  close(): Promise<void>;
}

export type OpenBytes = (path: string) => Promise<ByteFile>;

export async function openBytes(path: string): Promise<ByteFile> {
  // Without O_NONBLOCK, opening a named pipe at this path would block forever.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | (constants.O_NOCTTY ?? 0));
  try {
    const stat = await handle.stat({ bigint: true });
    if (!stat.isFile()) throw new Error("it is not a file");
    return {
      identity: String(stat.ino),
      sizeBytes: Number(stat.size),
      read: async (into, offset) => (await handle.read(into, 0, into.length, offset)).bytesRead,
      close: () => handle.close(),
    };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Reads until the buffer is full or the file ends. A single `read` may stop earlier. */
export async function readFully(file: ByteFile, into: Buffer, offset: number): Promise<number> {
  let filled = 0;
  while (filled < into.length) {
    const count = await file.read(into.subarray(filled), offset + filled);
    if (count === 0) break;
    filled += count;
  }
  return filled;
}

/** Reads the first bytes of a file as text. */
export async function readStart(
  path: string,
  bytesMax: number,
): Promise<{ text: string; sizeBytes: number }> {
  const file = await openBytes(path);
  try {
    const { sizeBytes } = file;
    const buffer = Buffer.alloc(Math.min(sizeBytes, bytesMax));
    return { text: buffer.toString("utf8", 0, await readFully(file, buffer, 0)), sizeBytes };
  } finally {
    await file.close();
  }
}

/** Returns null when the file is missing, unreadable or too large. */
export async function readSmall(path: string, bytesMax: number): Promise<string | null> {
  // A missing file is normal: most sessions have none of these optional files.
  const file = await openBytes(path).catch(() => null);
  if (file === null) return null;
  try {
    if (file.sizeBytes > bytesMax) return null;
    const buffer = Buffer.alloc(file.sizeBytes);
    return buffer.subarray(0, await readFully(file, buffer, 0)).toString("utf8");
  } catch {
    return null;
  } finally {
    await file.close();
  }
}

export async function readSmallObject(path: string, bytesMax = 1024 * 1024): Promise<JsonObject | null> {
  const text = await readSmall(path, bytesMax);
  return text === null ? null : parsedObject(text);
}
