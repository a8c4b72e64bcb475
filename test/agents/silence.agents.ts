import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventually } from "../support/daemon.ts";
import type { Step } from "./model/script.ts";
import { missing, type ProgramName } from "./support/cache.ts";
import { AGENT_MS, Stage } from "./support/stage.ts";

const SILENT: readonly [ProgramName, string, Step, RegExp][] = [
  [
    "claude",
    "whose model answers 401",
    { error: { status: 401, message: "invalid x-api-key" } },
    /^nothing heard for \d+ m?s: its agent is retrying after 401, attempt \d+ of \d+$/,
  ],
  [
    "codex",
    "whose model answers 500",
    { error: { status: 500, message: "Internal server error" } },
    /^nothing heard for \d+ m?s: its agent is retrying after (?:500|a failed connection)$/,
  ],
  [
    "gemini",
    "whose model does not answer",
    { delayMs: 10 * AGENT_MS },
    /^nothing heard for \d+ s: waiting for its model$/,
  ],
];

for (const [agent, trouble, step, words] of SILENT) {
  describe(`${agent}, ${trouble}`, { skip: missing(agent), concurrency: false }, () => {
    it("says so in its evidence while nothing else is heard", { timeout: 3 * AGENT_MS }, async () => {
      const stage = await Stage.open([agent], [{ name: "kid", on: /KID-WORK/, steps: [step] }]);
      try {
        const client = await stage.start();
        const { id } = await stage.root(client, agent, "KID-WORK: do your part");
        const evidence = await eventually(
          "its evidence tells of the silence",
          async () => {
            const { session } = await client.get({ id });
            return session.evidence.reason.startsWith("nothing heard") ? session.evidence : null;
          },
          AGENT_MS,
        );
        assert.match(evidence.reason, words);
        await client.cancel({ id });
      } finally {
        await stage.close();
      }
    });
  });
}
