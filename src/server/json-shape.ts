import { Refusal } from "../contract/refusal.ts";

/** How deep a body may nest: nobody's input has more than a few levels, and each level costs stack. */
export const JSON_DEPTH_MAX = 64;
/** How many fields and items a body may have. Their names and checks cost far more than their bytes. */
export const JSON_ITEMS_MAX = 10_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** What a byte outside a string means: 1 opens a level, 2 closes one, 3 begins another field or item. */
const MEANING = new Uint8Array(256);
for (const sign of "{[") MEANING[sign.charCodeAt(0)] = 1;
for (const sign of "}]") MEANING[sign.charCodeAt(0)] = 2;
MEANING[",".charCodeAt(0)] = 3;

/**
 * Counts the levels and items of JSON before it is parsed. Takes the bytes in pieces as they arrive and looks
 * at each once; `problem` is set as soon as a limit is passed. It does not check that the text is JSON.
 */
export class JsonShape {
  problem: Refusal | null = null;
  #depth = 0;
  #items = 0;
  #isString = false;
  #isEscaped = false;

  add(piece: Uint8Array): void {
    let at = 0;
    while (at < piece.length && this.problem === null) {
      if (this.#isEscaped) {
        this.#isEscaped = false;
        at += 1;
      } else if (this.#isString) at = this.#passString(piece, at);
      else {
        this.#take(piece[at] as number);
        at += 1;
      }
    }
  }

  /** To behind the end of a string, or behind the backslash of an escape. */
  #passString(piece: Uint8Array, from: number): number {
    for (let at = from; at < piece.length; at += 1) {
      const byte = piece[at];
      if (byte === BACKSLASH) {
        this.#isEscaped = true;
        return at + 1;
      }
      if (byte === QUOTE) {
        this.#isString = false;
        return at + 1;
      }
    }
    return piece.length;
  }

  #take(byte: number): void {
    if (byte === QUOTE) this.#isString = true;
    const meaning = MEANING[byte];
    if (meaning === 1) {
      this.#depth += 1;
      this.#items += 1;
      if (this.#depth > JSON_DEPTH_MAX) this.problem = tooDeep();
    } else if (meaning === 2) this.#depth -= 1;
    else if (meaning === 3) this.#items += 1;
    if (this.#items > JSON_ITEMS_MAX) this.problem ??= tooMany();
  }
}

/** Whether a text may be parsed, for JSON that is itself a value in a body. */
export function isWithinShape(text: string): boolean {
  const shape = new JsonShape();
  shape.add(Buffer.from(text));
  return shape.problem === null;
}

function tooDeep(): Refusal {
  return new Refusal(
    "invalid_input",
    `The JSON nests deeper than ${JSON_DEPTH_MAX} levels; send it flatter, or what is nested as text.`,
    { depthMax: JSON_DEPTH_MAX },
  );
}

function tooMany(): Refusal {
  return new Refusal(
    "invalid_input",
    `The JSON has more than ${JSON_ITEMS_MAX.toLocaleString("en")} fields and items; send fewer at a time, or what is long as text.`,
    { itemsMax: JSON_ITEMS_MAX },
  );
}
