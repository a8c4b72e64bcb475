import { z } from "zod";
import { Id } from "./id.ts";
import { Permission } from "./session.ts";
import { TokenRight } from "./token.ts";

/** `fence` comes from the session's token. A replaced agent process has an old fence and is refused. */
export const Caller = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("person"), id: z.string(), name: z.string() }),
  z.object({ kind: z.literal("session"), id: Id, rootId: Id, fence: z.number() }),
  z.object({
    kind: z.literal("outside"),
    id: z.string(),
    name: z.string(),
    can: z.array(TokenRight),
    scope: z.string().nullable(),
    ceiling: Permission,
    roots: z.array(z.string()).nullable(),
  }),
]);
export type Caller = z.infer<typeof Caller>;
