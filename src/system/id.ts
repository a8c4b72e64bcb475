import { createHash, randomBytes } from "node:crypto";
import { uuidv7 } from "uuidv7";

export function newId(): string {
  return uuidv7();
}

/**
 * Returns a random id for a text that is sent to an agent. The id is also in the tags around the text. The
 * text's author cannot guess the id, and so cannot forge the closing tag.
 */
export function newDeliveryId(): string {
  return randomBytes(4).toString("hex");
}

export function newSecret(prefix: string): string {
  return `${prefix}_${randomBytes(32).toString("base64url")}`;
}

/** Hashes a token, for storage and lookup: comparing hashes reveals nothing about the token. */
export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
