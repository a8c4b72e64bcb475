import { z } from "zod";

export { shortId } from "./short-id.ts";

/** A UUIDv7. Order by a sequence number, never by id. */
export const Id = z.uuid();

export const SessionRef = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .describe("a session's id, its short id or its name");
