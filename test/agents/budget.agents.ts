import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { allQuiet, callbacksTo, toolReplies } from "../support/family.ts";
import { script, spawnStep } from "../support/script.ts";
import { USED } from "./model/request.ts";
import { missing, type ProgramName } from "./support/cache.ts";
import { AGENT_MS, Stage } from "./support/stage.ts";
import { TOOLS } from "./support/tools.ts";

const CALL = USED.input + USED.output;
const LIMIT = 600;
/** The number of model calls after which the limit is reached. */
const REACHED = Math.ceil(LIMIT / CALL);
/**
 * A delay like that of a real model. Without it, the next answer could arrive before the agent is told to
 * stop.
 */
const MODEL_MS = 500;
const METERED: readonly ProgramName[] = ["claude", "codex", "gemini", "opencode"];

for (const agent of METERED) {
  describe(`a budget of ${agent}`, { skip: missing(agent), concurrency: false }, () => {
    it(
      "is kept to one model call, and the parent is told with the numbers",
      { timeout: 3 * AGENT_MS },
      async () => {
        const work = Array.from({ length: 40 }, (_, index) => ({
          say: `step ${index}`,
          call: TOOLS[agent].shell(`echo ${index}`),
          delayMs: MODEL_MS,
        }));
        const steps = [...work, { say: "all done" }];
        const stage = await Stage.open([agent], [{ name: "spender", on: /SPEND/, steps }]);
        try {
          const client = await stage.start();
          const child = { name: "spender", agent, prompt: "SPEND: do your part", limits: { tokens: LIMIT } };
          const { session: root } = await client.create({
            agent: "sim",
            cwd: stage.project,
            permission: "full",
            prompt: script(spawnStep({ ...child, permission: "full" })),
          });
          const [, spender] = await allQuiet(client, root.id, AGENT_MS);
          const [reply] = await toolReplies(client, root.id, "spawn_session");
          assert.match(reply!.text, /kept to within one model call/);
          assert.equal(spender!.outcome, "failed", spender!.outcomeReason ?? "");
          assert.match(spender!.outcomeReason ?? "", /^it reached its limit of 600 tokens \(used \d+\)$/);
          const answered = stage.model.asked.filter((one) => one.rule === "spender" && !one.isCut);
          assert.ok(answered.length <= REACHED, `${answered.length} model calls were answered`);
          const used = spender!.usage.inputTokens + spender!.usage.outputTokens;
          assert.ok(used >= LIMIT && used <= LIMIT + CALL, `${used} tokens are booked`);
          const callbacks = await callbacksTo(client, root.id);
          assert.equal(callbacks.length, 1);
          assert.match(
            callbacks[0]!.text,
            /FAILED after .*: it reached its limit of 600 tokens \(used \d+\)\./,
          );
        } finally {
          await stage.close();
        }
      },
    );
  });
}
