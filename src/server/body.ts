import { bytes } from "../text/quantity.ts";
import type { IncomingMessage } from "node:http";
import { Refusal } from "../contract/refusal.ts";
import { shortLine } from "../text/fence.ts";

/** Enough for the longest prompt that can be configured, JSON-escaped, and the other fields. */
export const BODY_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Returns the JSON of the body, or undefined if there is none. Refuses any other media type without reading
 * the body, because a foreign web page can send forms and plain text, but not JSON. Limits size and shape
 * while the bytes arrive.
 */
export async function readJson(incoming: IncomingMessage): Promise<unknown> {
  const type = incoming.headers["content-type"];
  const isDeclared = incoming.headers["transfer-encoding"] !== undefined || declaredBytes(incoming) > 0;
  if (type !== undefined || isDeclared) refuseUnlessJson(type ?? "", incoming.headers["content-encoding"]);
  if (declaredBytes(incoming) > BODY_BYTES_MAX) throw tooLarge();
  if (!isDeclared) return undefined;
  const text = await readText(incoming);
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    const why = error instanceof Error ? shortLine(error.message, 160) : "";
    throw new Refusal("malformed_json", `The body is not JSON: ${why}. Send one JSON object.`);
  }
}

function refuseUnlessJson(type: string, encoding: string | undefined): void {
  const essence = type.split(";")[0]?.trim().toLowerCase();
  if (essence !== "application/json") {
    throw new Refusal(
      "unsupported_media_type",
      "The body must be JSON; send it with content-type: application/json.",
    );
  }
  const charset = /charset\s*=\s*"?([^";\s]+)/i.exec(type)?.[1]?.toLowerCase();
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8") {
    throw new Refusal("unsupported_media_type", "The body must be in UTF-8.");
  }
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    throw new Refusal(
      "unsupported_media_type",
      "The body must not be compressed; leave content-encoding out.",
    );
  }
}

function declaredBytes(incoming: IncomingMessage): number {
  return Number(incoming.headers["content-length"] ?? 0);
}

async function readText(incoming: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  const shape = new JsonShape();
  let bytes = 0;
  // Leaving the loop early must not destroy the socket: the refusal still has to be sent.
  const read: AsyncIterable<Buffer> = incoming.iterator({ destroyOnReturn: false });
  for await (const piece of read) {
    bytes += piece.length;
    if (bytes > BODY_BYTES_MAX) throw tooLarge();
    shape.add(piece);
    // A body that is refused for its shape is still read to its end, so that the connection can be reused.
    if (shape.problem === null) pieces.push(piece);
  }
  if (shape.problem !== null) throw shape.problem;
  return Buffer.concat(pieces).toString("utf8");
}

function tooLarge(): Refusal {
  return new Refusal("body_too_large", `The body is larger than ${bytes(BODY_BYTES_MAX)}; send less.`, {
    bytesMax: BODY_BYTES_MAX,
  });
}

/** The deepest nesting of a body: each level costs stack, and valid input has only a few. */
export const JSON_DEPTH_MAX = 64;
/** The most fields and items of a body, because validating one costs far more than reading its bytes. */
export const JSON_ITEMS_MAX = 10_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** What a byte outside a string does: 1 opens a level, 2 closes one, 3 begins another field or item. */
const MEANING = new Uint8Array(256);
for (const sign of "{[") MEANING[sign.charCodeAt(0)] = 1;
for (const sign of "}]") MEANING[sign.charCodeAt(0)] = 2;
MEANING[",".charCodeAt(0)] = 3;

/**
 * Counts levels and items of JSON before it is parsed, in chunks as they arrive. Sets `problem` as soon as a
 * limit is exceeded. Does not check the syntax.
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

  /** Returns the position after the closing quote or after a backslash, or the end of the chunk. */
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

/** Returns whether JSON inside a string value is within the limits and may be parsed. */
export function isWithinShape(text: string): boolean {
  const shape = new JsonShape();
  shape.add(Buffer.from(text));
  return shape.problem === null;
}

function tooDeep(): Refusal {
  return new Refusal(
    "invalid_input",
    `The JSON nests deeper than ${JSON_DEPTH_MAX} levels; send fewer levels, or send the nested part as text.`,
    { depthMax: JSON_DEPTH_MAX },
  );
}

function tooMany(): Refusal {
  return new Refusal(
    "invalid_input",
    `The JSON has more than ${JSON_ITEMS_MAX.toLocaleString("en")} fields and items; send fewer at a time, or send the long part as text.`,
    { itemsMax: JSON_ITEMS_MAX },
  );
}
