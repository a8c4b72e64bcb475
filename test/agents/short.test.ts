// The short version of `npm run test:agents`: the two agents that start fastest, each as a parent and as a
// child of the other. It downloads nothing.
import { describe, it } from "node:test";
import type { TestContext } from "node:test";
import * as scenarios from "./scenarios.ts";
import type { Ends } from "./scenarios.ts";
import { missing } from "./support/cache.ts";
import { Stage } from "./support/stage.ts";

const CODEX_PARENT: Ends = { parent: "codex", kid: "claude" };
const CLAUDE_PARENT: Ends = { parent: "claude", kid: "codex" };

describe("two real agents of different vendors", { skip: reason(), concurrency: false }, () => {
  proves("codex raises claude and is called back while it is idle", CODEX_PARENT, scenarios.calledBack);
  proves("claude raises codex and is called back while it is idle", CLAUDE_PARENT, scenarios.calledBack);
  proves("codex asks a question that claude, its parent, answers", CLAUDE_PARENT, scenarios.asks);
  proves("codex and claude are cancelled with their shell commands", CODEX_PARENT, scenarios.cancelled);
});

function proves(name: string, ends: Ends, run: (stage: Stage, ends: Ends) => Promise<unknown>): void {
  it(name, async (context: TestContext) => {
    const stage = await Stage.open([ends.parent, ends.kid], []);
    try {
      await run(stage, ends);
    } catch (error) {
      for (const one of stage.model.asked) context.diagnostic(`${one.rule}#${one.step} ${one.answer}`);
      throw error;
    } finally {
      await stage.close();
    }
  });
}

function reason(): string | false {
  return process.platform === "linux" ? missing("codex", "claude") : "it looks for processes in /proc";
}
