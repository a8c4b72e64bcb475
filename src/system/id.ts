import { createHash, randomBytes } from "node:crypto";
import { uuidv7 } from "uuidv7";

export function newId(): string {
  return uuidv7();
}

/**
 * Returns the id of a text that is sent to an agent. It is also the nonce of the text's fence, so the author
 * of the fenced text cannot know it.
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
