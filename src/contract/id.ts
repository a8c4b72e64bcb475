import { z } from "zod";

export { shortId } from "./short-id.ts";

/** A UUIDv7. Order by sequence, never by id. */
export const Id = z.uuid();
export type Id = z.infer<typeof Id>;

/** A reference to a session: an id, a short id or a name. */
export const SessionRef = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .describe("a session's id, its short id or its name");
