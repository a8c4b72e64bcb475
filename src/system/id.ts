import { createHash, randomBytes } from "node:crypto";
import { uuidv7 } from "uuidv7";

export function newId(): string {
  return uuidv7();
}

/**
 * Returns an id that is part of the text sent to an agent, and the nonce of its fence: nobody else can know
 * it.
 */
export function newDeliveryId(): string {
  return randomBytes(4).toString("hex");
}

export function newSecret(prefix: string): string {
  return `${prefix}_${randomBytes(32).toString("base64url")}`;
}

/** Hashes a token, for storing it and looking it up; comparing hashes reveals nothing about the token. */
export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
