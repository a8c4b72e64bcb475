import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream";
import { createZstdDecompress } from "node:zlib";
import { type ByteFile, openBytes } from "../../../lines/byte-file.ts";

/** How much unpacked data is kept, so reading a little further back does not restart the unpacking. */
const KEEP_BYTES = 8 * 1024 * 1024;
/** Chunk size. Larger than Node's default: each chunk waits for another thread, so fewer are faster. */
const STEP_BYTES = 512 * 1024;
/** No real session is this long. The limit keeps a decompression bomb from being unpacked to its end. */
const UNPACKED_BYTES_MAX = 16 * 1024 * 1024 * 1024;
/** This line replaces the rest of a damaged file. It is not JSON, so it is counted as a bad line. */
const BROKEN = Buffer.from("\n[the compressed file is broken here]\n");

/**
 * Opens the bytes inside a compressed file. The file is unpacked as a stream: once to learn its length, then
 * again as it is read. Reading from before the kept data unpacks the file from its beginning again. A
 * truncated or damaged file gives the bytes before the damage.
 */
export async function openZstd(path: string): Promise<ByteFile> {
  const plain = await openBytes(path);
  await plain.close();
  const { mtimeMs } = await stat(path);
  const name = [path, plain.identity, plain.sizeBytes, mtimeMs].join("\n");
  const known = recent?.name === name ? recent : null;
  const unpacking = known ?? new Unpacking(name, path);
  if (known !== null) recent = null;
  try {
    if (known === null) while (await unpacking.advance());
    if (unpacking.sizeBytes === BROKEN.length)
      throw new Error("it is not a zstd file, or it is damaged from its start");
  } catch (error) {
    await unpacking.stop();
    throw error;
  }
  return {
    identity: plain.identity,
    sizeBytes: unpacking.sizeBytes,
    read: (into, offset) => unpacking.read(into, offset),
    async close() {
      await unpacking.stop();
      recent = unpacking;
    },
  };
}

/** The last unpacked file is cached, because `glance` and `tail` open the same file several times. */
let recent: Unpacking | null = null;

class Unpacking {
  /** Identifies one exact version of a file. */
  readonly name: string;
  readonly #path: string;
  #stream: AsyncIterator<Buffer> | null = null;
  #isOver = false;
  #kept: Buffer[] = [];
  #start = 0;
  #end = 0;
  /** 0 until the file has been unpacked to its end. */
  sizeBytes = 0;

  constructor(name: string, path: string) {
    this.name = name;
    this.#path = path;
  }

  async read(into: Buffer, offset: number): Promise<number> {
    if (offset >= this.sizeBytes) return 0;
    const end = Math.min(offset + into.length, this.sizeBytes);
    if (offset < this.#start || (end > this.#end && this.#isOver)) await this.#restart();
    while (this.#end < end && (await this.advance()));
    let filled = 0;
    let at = this.#start;
    for (const chunk of this.#kept) {
      const from = offset + filled - at;
      if (from >= 0 && from < chunk.length && filled < into.length) {
        filled += chunk.copy(into, filled, from);
      }
      at += chunk.length;
    }
    return filled;
  }

  async advance(): Promise<boolean> {
    if (this.#isOver) return false;
    this.#stream ??= unpacked(this.#path);
    let chunk: Buffer | null;
    try {
      const step = await this.#stream.next();
      chunk = step.done ? null : step.value;
      if (this.#end > UNPACKED_BYTES_MAX) throw new Error("it is too large");
      this.#isOver = chunk === null;
    } catch {
      // `BROKEN` replaces the damaged rest, and is counted as a bad line.
      chunk = BROKEN;
      this.#isOver = true;
    }
    if (chunk !== null) this.#keep(chunk);
    if (this.#isOver) {
      this.sizeBytes = this.#end;
      await this.#endStream();
    }
    return !this.#isOver;
  }

  /** Closes the stream but keeps the unpacked data. */
  async stop(): Promise<void> {
    await this.#endStream();
    this.#isOver = true;
  }

  async #endStream(): Promise<void> {
    const stream = this.#stream;
    this.#stream = null;
    await stream?.return?.();
  }

  async #restart(): Promise<void> {
    await this.#endStream();
    [this.#kept, this.#start, this.#end, this.#isOver] = [[], 0, 0, false];
  }

  #keep(chunk: Buffer): void {
    this.#kept.push(chunk);
    this.#end += chunk.length;
    while (this.#end - this.#start - (this.#kept[0] as Buffer).length >= KEEP_BYTES) {
      this.#start += (this.#kept.shift() as Buffer).length;
    }
  }
}

async function* unpacked(path: string): AsyncGenerator<Buffer> {
  const stream = pipeline(
    createReadStream(path, { highWaterMark: STEP_BYTES }),
    createZstdDecompress({ chunkSize: STEP_BYTES }),
    () => {
      // The loop below receives the error. Without this callback the error would also be thrown as unhandled.
    },
  );
  for await (const chunk of stream) yield chunk as Buffer;
}
