import { z } from "zod";
import { Permission } from "./session.ts";

export const TokenRight = z.enum(["read", "spawn", "answer", "fire", "cancel"]);
export type TokenRight = z.infer<typeof TokenRight>;

/** An API key of an outside system. The secret itself is shown once and not kept. */
export const Token = z.object({
  id: z.string(),
  name: z.string(),
  can: z.array(TokenRight),
  scope: z.string().nullable(),
  ceiling: Permission.describe("the highest permission of a session it may start or write to"),
  roots: z.array(z.string()).nullable().describe("folders that those sessions may work in; null allows any"),
  createdAt: z.number(),
  expiresAt: z.number().nullable(),
  revokedAt: z.number().nullable(),
});
export type Token = z.infer<typeof Token>;
