import { z } from "zod";
import { Usage } from "./session.ts";

/** What the daemon itself observed in a turn or a round. */
export const Receipt = z.object({
  turns: z.number(),
  toolCalls: z.array(z.object({ name: z.string(), ok: z.boolean(), count: z.number() })),
  commands: z.array(z.object({ command: z.string(), exitCode: z.number().nullable() })),
  filesChanged: z.array(
    z.object({
      path: z.string(),
      status: z.enum(["added", "changed", "removed"]),
      added: z.number().nullable(),
      removed: z.number().nullable(),
    }),
  ),
  denied: z.array(z.object({ tool: z.string(), count: z.number() })),
  durationMs: z.number(),
  usage: Usage,
  stopReason: z.string().nullable(),
});
export type Receipt = z.infer<typeof Receipt>;
