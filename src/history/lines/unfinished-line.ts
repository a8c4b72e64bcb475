/** Most unfinished lines are shorter than this and share one buffer. */
const ROOM_BYTES = 256 * 1024;

/**
 * The beginning of a line whose end has not been read. A long line grows in place, because memory may not
 * suffice for a second copy. `drop` frees its memory at once, without waiting for a garbage collection.
 */
export class UnfinishedLine {
  readonly #bytesMax: number;
  #room: Buffer | null = null;
  #long: ArrayBuffer | null = null;
  #length = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get length(): number {
    return this.#length;
  }

  /** Valid only until the next `add` or `drop`. */
  get bytes(): Buffer {
    if (this.#long !== null) return Buffer.from(this.#long, 0, this.#length);
    return this.#room?.subarray(0, this.#length) ?? NOTHING;
  }

  /** Copies the bytes, because the caller reuses the buffer for the next chunk. */
  add(bytes: Buffer): void {
    const length = this.#length + bytes.length;
    if (this.#long === null && length <= ROOM_BYTES) {
      this.#room ??= Buffer.allocUnsafeSlow(Math.min(ROOM_BYTES, this.#bytesMax));
      this.#room.set(bytes, this.#length);
    } else {
      const long = this.#long ?? this.#moved();
      long.resize(length);
      Buffer.from(long, this.#length, bytes.length).set(bytes);
    }
    this.#length = length;
  }

  drop(): void {
    this.#long?.resize(0);
    this.#long = null;
    this.#length = 0;
  }

  #moved(): ArrayBuffer {
    const long = new ArrayBuffer(this.#length, { maxByteLength: this.#bytesMax });
    Buffer.from(long).set(this.bytes);
    this.#long = long;
    return long;
  }
}

const NOTHING = Buffer.alloc(0);
