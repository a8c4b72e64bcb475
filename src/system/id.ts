import { createHash, randomBytes } from "node:crypto";
import { uuidv7 } from "uuidv7";

export function newId(): string {
  return uuidv7();
}

/**
 * Returns a random id for a text that is sent to an agent. The id also marks the text's fence. The text's
 * author cannot guess the id, and so cannot close the fence.
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
