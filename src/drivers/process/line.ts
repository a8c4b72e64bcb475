import type { Readable } from "node:stream";
import { cutBefore } from "../../text/fence.ts";
import { bytes } from "../../text/quantity.ts";

/** Limits of one line from an agent, checked while its bytes arrive, before anything is parsed. */
export interface LineLimits {
  /** The limit of one string in the line. A longer string is cut, and a note at its end says so. */
  readonly stringBytesMax: number;
  /** The limit of the line as received. A program that writes a longer line is not a usable agent. */
  readonly rawBytesMax: number;
  /** The limit of the line after cuts. Beyond the limit, every further string is cut to `SHORT_BYTES`. */
  readonly lineBytesMax: number;
  /** How many values and keys, counted together, the line may have. */
  readonly partsMax: number;
  readonly depthMax: number;
}

const LINE_LIMITS: LineLimits = {
  stringBytesMax: 1024 * 1024,
  rawBytesMax: 64 * 1024 * 1024,
  lineBytesMax: 2 * 1024 * 1024,
  partsMax: 50_000,
  depthMax: 200,
};

/** The limit of each further string in a line that has reached `lineBytesMax`. */
const SHORT_BYTES = 1_024;
/** How many bytes longer than `lineBytesMax` a line may become. A longer line is refused. */
const REST_BYTES = 1024 * 1024;
/** The value of `#escape` right after a backslash, when the kind of escape is not known yet. */
const FIRST = 5;
const DIGITS = 4;

const NEWLINE = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const OPEN_BRACE = 0x7b;
const OPENING: ReadonlySet<number> = new Set([OPEN_BRACE, 0x5b]);
const CLOSING: ReadonlySet<number> = new Set([0x7d, 0x5d]);
const DIVIDING: ReadonlySet<number> = new Set([0x2c, 0x3a]);

/**
 * Collects one line of JSON piece by piece, and keeps no more of it than the limits allow. Adding a piece
 * takes time linear in its size. If a line begins with anything but `{`, counts its bytes and keeps none.
 */
export class Line {
  bytes = 0;
  /** Why the line is refused; null if it is not. */
  problem: string | null = null;
  readonly #limits: LineLimits;
  #parts: Buffer[] = [];
  #kept = 0;
  #isNoise = false;
  #isString = false;
  /** How many bytes of the escape sequence are still to come; `FIRST` while its kind is not known yet. */
  #escape = 0;
  #stringBytes = 0;
  /** One more than the number of bytes cut from the current string; 0 if the string is not cut. */
  #leftOut = 0;
  #depth = 0;
  #count = 0;

  constructor(limits: Partial<LineLimits> = {}) {
    this.#limits = { ...LINE_LIMITS, ...limits };
  }

  add(piece: Buffer): void {
    if (piece.length === 0 || this.problem !== null) return;
    if (this.bytes === 0) this.#isNoise = piece[0] !== OPEN_BRACE;
    this.bytes += piece.length;
    const { rawBytesMax } = this.#limits;
    if (this.bytes > rawBytesMax) this.problem = `of more than ${bytes(rawBytesMax)}`;
    else if (!this.#isNoise) this.#scan(piece);
  }

  take(): Buffer {
    const whole = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
    this.bytes =
      this.#kept =
      this.#escape =
      this.#stringBytes =
      this.#leftOut =
      this.#depth =
      this.#count =
        0;
    this.problem = null;
    this.#parts = [];
    this.#isString = false;
    return whole;
  }

  #scan(piece: Buffer): void {
    /** Where the bytes to keep begin; unused while a string is being cut. */
    let from = 0;
    for (let at = 0; at < piece.length;) {
      const byte = piece[at] as number;
      if (!this.#isString) {
        if (byte === QUOTE) this.#isString = true;
        else this.#structure(byte);
        at += 1;
      } else if (this.#escape > 0) {
        this.#escape = this.#escape < FIRST ? this.#escape - 1 : byte === LETTER_U ? DIGITS : 0;
        this.#counted(1);
        at += 1;
      } else if (byte === QUOTE) {
        if (this.#leftOut > 0) from = at;
        this.#endString();
        at += 1;
      } else {
        const end = byte === BACKSLASH ? at + 1 : plainEnd(piece, at);
        if (this.#leftOut === 0) {
          const cut = this.#cutAt(piece, at, end);
          if (cut !== null) {
            this.#keep(piece.subarray(from, cut));
            this.#counted(cut - at);
            this.#leftOut = 1;
            at = cut;
            continue;
          }
        }
        if (byte === BACKSLASH) this.#escape = FIRST;
        this.#counted(end - at);
        at = end;
      }
    }
    if (this.#leftOut === 0) this.#keep(piece.subarray(from));
  }

  /** Returns where to cut the string within these bytes, at a character boundary; null if it fits. */
  #cutAt(piece: Buffer, at: number, end: number): number | null {
    const { stringBytesMax, lineBytesMax } = this.#limits;
    const room = (this.#kept > lineBytesMax ? SHORT_BYTES : stringBytesMax) - this.#stringBytes;
    let cut = at + Math.max(0, room);
    while (cut < end && isInside(piece[cut] as number)) cut += 1;
    return cut < end && !isInside(piece[cut] as number) ? cut : null;
  }

  #counted(bytes: number): void {
    if (this.#leftOut > 0) this.#leftOut += bytes;
    else this.#stringBytes += bytes;
  }

  #endString(): void {
    if (this.#leftOut > 0) {
      this.#keep(Buffer.from(` … [Kinfold left out ${this.#leftOut - 1} bytes]`));
    }
    this.#isString = false;
    this.#stringBytes = this.#leftOut = 0;
  }

  #structure(byte: number): void {
    if (CLOSING.has(byte)) this.#depth -= 1;
    else if (OPENING.has(byte)) this.#depth += 1;
    else if (!DIVIDING.has(byte)) return;
    else this.#count += 1;
    const { partsMax, depthMax } = this.#limits;
    if (this.#depth > depthMax) this.problem ??= `nested more than ${depthMax} levels deep`;
    if (this.#count > partsMax) this.problem ??= `with more than ${partsMax} values`;
  }

  #keep(part: Buffer): void {
    if (part.length === 0) return;
    this.#kept += part.length;
    if (this.#kept > this.#limits.lineBytesMax + REST_BYTES) {
      this.problem ??= `of more than ${bytes(this.#limits.lineBytesMax)}`;
      this.#parts = [];
    } else this.#parts.push(part);
  }
}

/** Yields the lines of an agent's pipe except empty ones. Ends early when a line exceeds its limits. */
export async function* readLines(
  input: Readable,
  limits: Partial<LineLimits> | undefined,
  onTooLong?: (problem: string) => void,
): AsyncGenerator<Buffer, void> {
  const line = new Line(limits);
  const pace = pacer();
  try {
    for await (const chunk of input as AsyncIterable<Buffer>) {
      for (let from = 0; from < chunk.length;) {
        const end = chunk.indexOf(NEWLINE, from);
        line.add(chunk.subarray(from, end < 0 ? chunk.length : end));
        if (line.problem !== null) return onTooLong?.(line.problem);
        if (end < 0) break;
        if (line.bytes > 0) yield line.take();
        from = end + 1;
        await pace();
      }
    }
  } catch (error) {
    // The pipe was destroyed when the agent ended; the exit is reported elsewhere.
    if (!input.destroyed) throw error;
  }
  if (line.bytes > 0) yield line.take();
}

/** Returns a function to await after each line. It lets the event loop run when a time slice is over. */
export function pacer(): () => Promise<void> | null {
  let since = performance.now();
  return () => {
    if (performance.now() - since < SHARE_MS) return null;
    return new Promise((resolve) => {
      setImmediate(() => {
        since = performance.now();
        resolve();
      });
    });
  };
}

const SHARE_MS = 5;

/** The longest text that is handled before the event loop may run. */
const PIECE_CHARS = 16 * 1024;

export function isLong(text: string): boolean {
  return text.length > PIECE_CHARS;
}

/** Cuts a long text into pieces, never inside a character. */
export function* piecesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    const piece = text.slice(from, cutBefore(text, from + PIECE_CHARS));
    from += piece.length;
    yield piece;
  }
}

/** Returns where the plain bytes of a string end: at a quote, a backslash, or the end of the piece. */
function plainEnd(piece: Buffer, from: number): number {
  let at = from + 1;
  while (at < piece.length && piece[at] !== QUOTE && piece[at] !== BACKSLASH) at += 1;
  return at;
}

/** Whether this byte continues a UTF-8 character. */
function isInside(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}
