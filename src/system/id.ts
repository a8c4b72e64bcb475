import { createHash, randomBytes } from "node:crypto";
import { uuidv7 } from "uuidv7";

export function newId(): string {
  return uuidv7();
}

/** Stands in the text that is sent, and is the nonce of its fence: nobody else can know it. */
export function newDeliveryId(): string {
  return randomBytes(4).toString("hex");
}

export function newSecret(prefix: string): string {
  return `${prefix}_${randomBytes(32).toString("base64url")}`;
}

/** Tokens are stored and looked up by this; comparing hashes tells nothing about the token. */
export function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
