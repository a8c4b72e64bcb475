import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** The bytes of one file that is open for reading and may grow, shrink or vanish meanwhile. */
export interface ByteFile {
  /** Changes when another file takes the same path. */
  readonly identity: string;
  readonly sizeBytes: number;
  /** Up to the buffer's length from this offset on; fewer at the end, 0 behind it. */
  read(into: Buffer, offset: number): Promise<number>;
  close(): Promise<void>;
}

export type OpenBytes = (path: string) => Promise<ByteFile>;

/** A plain file. It is never created, and nothing about it is changed. */
export async function openBytes(path: string): Promise<ByteFile> {
  // Without O_NONBLOCK a pipe that someone put there would be waited for without end.
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

/** Reads until the buffer is full or the file ends: a short read alone is not the end. */
export async function readFully(file: ByteFile, into: Buffer, offset: number): Promise<number> {
  let filled = 0;
  while (filled < into.length) {
    const count = await file.read(into.subarray(filled), offset + filled);
    if (count === 0) break;
    filled += count;
  }
  return filled;
}
