import type { IncomingMessage } from "node:http";
import { Refusal } from "../../contract/refusal.ts";
import { refusalBody, refusalHeaders } from "../refusal-response.ts";
import { readJson } from "../body.ts";
import { fieldsOf } from "../../text/fields.ts";
import { refusalLine } from "./reply.ts";

/** A longer body of a refused call is not read. */
const BYTES_MAX = 64 * 1024;
/** How many bodies of refused calls are read at the same time. */
const READING_MAX = 64;

/**
 * Answers a refused tool call with a tool error, which the model can read. A client would show a bare 503 as
 * a transport error, or give up on the server. `answer` returns null for other requests, which get the 503.
 */
export class BusyCalls {
  #reading = 0;

  async answer(incoming: IncomingMessage, refusal: Refusal): Promise<Response | null> {
    const bytes = Number(incoming.headers["content-length"] ?? Infinity);
    if (incoming.method !== "POST" || bytes > BYTES_MAX || this.#reading >= READING_MAX) return null;
    this.#reading += 1;
    try {
      return busyReply(await readJson(incoming), refusal);
    } catch (error) {
      // If the body cannot be read, the caller gets the original refusal.
      if (error instanceof Refusal || incoming.destroyed) return null;
      throw error;
    } finally {
      this.#reading -= 1;
    }
  }
}

/** Returns the refusal as the result of the call in this body; null if the body is not a single call. */
export function busyReply(body: unknown, refusal: Refusal): Response | null {
  const { id, method, params } = fieldsOf(body);
  if (method !== "tools/call" || (typeof id !== "string" && typeof id !== "number")) return null;
  const isJson = fieldsOf(fieldsOf(params)["_meta"])["kinfold/json"] === true;
  const text = isJson ? JSON.stringify(refusalBody(refusal)) : refusalLine(refusal);
  const result = { isError: true, content: [{ type: "text", text }] };
  return Response.json({ jsonrpc: "2.0", id, result }, { headers: refusalHeaders(refusal) });
}
