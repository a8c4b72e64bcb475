import { z } from "zod";
import { Session } from "./session.ts";

export const AttachInput = z.strictObject({
  client: z.string().trim().min(1).max(100).describe("the name the client gave itself"),
  cwd: z.string().min(1).max(4096).describe("where it works"),
  pid: z.int().min(1).optional().describe("the process that speaks for it"),
});

/** The token belongs to the new session, is shown only in this answer and is valid until it is revoked. */
export const AttachOutput = z.object({ session: Session, token: z.string() });
