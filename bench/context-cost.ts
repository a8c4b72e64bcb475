import { instructionsFor, toolsFor } from "../src/contract/index.ts";
import { atMost, type Measurement } from "./measurement.ts";

const ROLES = { full: "everyone else", attached: "attached root", leaf: "leaf" } as const;
const TOOLS_BYTES_MAX = 8_192;

/**
 * Measures how much of an agent's context Kinfold uses: the reply to tools/list and the server's
 * instructions.
 */
export const contextCost: Measurement = {
  name: "context-cost",
  run: async () =>
    (["leaf", "attached", "full"] as const).map((role) => {
      const tools = toolsFor(role, { aliases: false });
      const words = Buffer.byteLength(instructionsFor(role));
      return {
        what: `tools of a session, ${ROLES[role]}`,
        value: Buffer.byteLength(JSON.stringify({ tools })),
        unit: "B",
        goal: atMost(TOOLS_BYTES_MAX),
        note: `${tools.length} tools as tools/list answers; the instructions are ${words} B more`,
      };
    }),
};
