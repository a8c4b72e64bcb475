import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { readWal, type Wal, walHeader } from "./wal.ts";

/** The pages of a database as of one commit. */
export interface Pages {
  /** How many bytes of each page can hold content. */
  readonly usableBytes: number;
  /** Returns a page's bytes, which must not be changed. Pages count from 1. */
  page(number: number): Buffer;
  /** Like `page`, for a page that is used once. Its bytes are valid only until the next call of `passing`. */
  passing(number: number): Buffer;
  /**
   * Whether everything read since the database was opened belongs to one commit. A writer may copy pages back
   * into the file or restart its log at any time, which mixes pages of different commits.
   */
  isStill(): boolean;
  close(): void;
}

const MAGIC = "SQLite format 3\0";
const JOURNAL_MAGIC = Buffer.from("d9d505f920a163d7", "hex");
const CACHED_MAX = 512;
const SLAB_PAGES = 16;

/**
 * Opens a database and its write-ahead log with plain file reads. SQLite itself would take locks, create a
 * `-shm` file, and might checkpoint the log into the database when it closes.
 */
export function openPages(path: string): Pages {
  const file = openForReading(path);
  let log: number | null = null;
  try {
    log = openIfThere(`${path}-wal`);
    return new FilePages(path, file, log);
  } catch (error) {
    closeSync(file);
    if (log !== null) closeSync(log);
    throw error;
  }
}

class FilePages implements Pages {
  readonly usableBytes: number;
  readonly #file: number;
  readonly #log: number | null;
  readonly #path: string;
  readonly #wal: Wal | null;
  readonly #stamp: string;
  readonly #pageBytes: number;
  readonly #pageCount: number;
  readonly #cached = new Map<number, Buffer>();
  #passing: Buffer | null = null;
  #slab = Buffer.alloc(0);

  constructor(path: string, file: number, log: number | null) {
    [this.#path, this.#file, this.#log] = [path, file, log];
    this.#stamp = this.#stampNow();
    this.#wal = log === null ? null : readWal(log);
    const head = this.#head();
    this.#pageBytes = pageBytesOf(head);
    if (this.#wal !== null && this.#wal.pageBytes !== this.#pageBytes)
      throw new Error("its write-ahead log belongs to another database");
    this.usableBytes = this.#pageBytes - (head[20] as number);
    if (this.usableBytes < 480) throw new Error("its page size is invalid");
    if (head.readUInt32BE(56) > 1) throw new Error("its text encoding is not UTF-8");
    if (this.#wal === null && head[19] === 1) this.#refuseHalfDone();
    this.#pageCount = this.#wal?.pageCount ?? Math.ceil(fstatSync(file).size / this.#pageBytes);
  }

  page(number: number): Buffer {
    const known = this.#cached.get(number);
    if (known !== undefined) {
      // Moves the page to the end of the map, so that the first key is always the least recently used page.
      this.#cached.delete(number);
      this.#cached.set(number, known);
      return known;
    }
    const page = this.#newPage();
    this.#readPage(number, page);
    this.#cached.set(number, page);
    if (this.#cached.size > CACHED_MAX) this.#cached.delete(this.#cached.keys().next().value as number);
    return page;
  }

  passing(number: number): Buffer {
    this.#passing ??= Buffer.allocUnsafeSlow(this.#pageBytes);
    this.#readPage(number, this.#passing);
    return this.#passing;
  }

  isStill(): boolean {
    if (this.#stampNow() !== this.#stamp) return false;
    if (this.#log === null) return !statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size;
    // While the log's header stays the same, frames are only appended, so what was read is still valid.
    return this.#wal === null || walHeader(this.#log)?.salts === this.#wal.salts;
  }

  close(): void {
    closeSync(this.#file);
    if (this.#log !== null) closeSync(this.#log);
  }

  /** Takes the page from a larger buffer, because allocating many small buffers costs more than the reads. */
  #newPage(): Buffer {
    if (this.#slab.length < this.#pageBytes)
      this.#slab = Buffer.allocUnsafeSlow(this.#pageBytes * SLAB_PAGES);
    const page = this.#slab.subarray(0, this.#pageBytes);
    this.#slab = this.#slab.subarray(this.#pageBytes);
    return page;
  }

  #stampNow(): string {
    const { size, mtimeNs } = fstatSync(this.#file, { bigint: true });
    return `${size}:${mtimeNs}`;
  }

  /** Reads the first bytes of the database. They come from the log if the log has the first page. */
  #head(): Buffer {
    const head = Buffer.alloc(100);
    const frame = this.#wal?.frames.get(1);
    if (frame === undefined) readSync(this.#file, head, 0, 100, 0);
    else readSync(this.#log as number, head, 0, 100, frame);
    if (head.toString("latin1", 0, 16) !== MAGIC) throw new Error("it is not an SQLite database");
    return head;
  }

  #readPage(number: number, into: Buffer): void {
    if (!Number.isInteger(number) || number < 1 || number > this.#pageCount) {
      throw new Error(`it has no page ${number}`);
    }
    const frame = this.#wal?.frames.get(number);
    const count =
      frame === undefined
        ? readSync(this.#file, into, 0, into.length, (number - 1) * this.#pageBytes)
        : readSync(this.#log as number, into, 0, into.length, frame);
    if (count !== into.length) throw new Error(`its page ${number} is truncated`);
  }

  /**
   * Throws if a transaction is unfinished. Without a write-ahead log, a transaction changes the file itself,
   * and the old content is only in the journal.
   */
  #refuseHalfDone(): void {
    const journal = openIfThere(`${this.#path}-journal`);
    if (journal === null) return;
    try {
      const head = Buffer.alloc(8);
      readSync(journal, head, 0, 8, 0);
      if (head.equals(JOURNAL_MAGIC))
        throw new Error("it has an unfinished transaction in its rollback journal");
    } finally {
      closeSync(journal);
    }
  }
}

function pageBytesOf(head: Buffer): number {
  const written = head.readUInt16BE(16);
  const bytes = written === 1 ? 65_536 : written;
  if (bytes < 512 || (bytes & (bytes - 1)) !== 0) throw new Error("its page size is invalid");
  return bytes;
}

function openForReading(path: string): number {
  // Without O_NONBLOCK, opening a named pipe at this path would block forever.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | (constants.O_NOCTTY ?? 0));
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw new Error("it is not a file");
}

function openIfThere(path: string): number | null {
  try {
    return openForReading(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
