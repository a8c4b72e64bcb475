import { shortLine } from "../text/cut.ts";
import { bytes } from "../text/quantity.ts";
import type { IncomingMessage } from "node:http";
import { Refusal } from "../contract/refusal.ts";
import { JsonShape } from "./json-shape.ts";

/** A prompt of the greatest length that may be configured, escaped, and some more. */
export const BODY_BYTES_MAX = 4 * 1024 * 1024;

/**
 * The JSON of a request's body; undefined where there is none. The media type is checked before
 * the first byte is read, because a form or plain text is what a foreign page can send. Size, depth and
 * number of items are checked while the bytes arrive, before anything is parsed.
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
    // What is refused is still read to its end, so that the connection can be used again.
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
