import { z } from "zod";

export const Steer = z.enum(["inject", "queue", "restart", "none"]);
export type Steer = z.infer<typeof Steer>;

/** What an agent on a node can do, as the engine found it. */
export const Agent = z.object({
  name: z.string(),
  title: z.string(),
  installed: z.boolean(),
  version: z.string().nullable(),
  signedIn: z.boolean().nullable().describe("null where it cannot be known without starting it"),
  problem: z.string().nullable(),
  howToInstall: z.string().nullable(),
  steer: Steer,
  load: z.boolean(),
  fork: z.boolean(),
  cost: z.enum(["usd", "tokens", "none"]),
  metersCalls: z
    .boolean()
    .optional()
    .describe("says what it has used after each model call, not only at the end of a turn"),
  questions: z.boolean(),
  models: z.array(z.string()),
  defaultModel: z.string().nullable(),
});
export type Agent = z.infer<typeof Agent>;
