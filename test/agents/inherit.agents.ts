import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ModelMessage } from "./model/request.ts";
import type { Rule } from "./model/script.ts";
import { allQuiet, childNamed } from "../support/family.ts";
import { missing, PARENT_NAMES } from "./support/cache.ts";
import { AGENT_MS, Stage } from "./support/stage.ts";

/** The agents that report that they can copy a conversation. */
const FORKS = new Set(["claude", "codex", "opencode"]);

function rules(inherit: "brief" | "fork"): Rule[] {
  const input = { name: "kid", prompt: "KID-WORK: do your part.", inherit };
  return [
    { name: "called back", on: /\[Kinfold\] Child "kid"/, steps: [{ say: "noted" }] },
    { name: "kid", on: /KID-WORK/, steps: [{ say: "the kid has done its part" }] },
    {
      name: "parent",
      on: /RAISE/,
      steps: [{ say: "NEWEST-WORDS", call: { tool: "spawn_session", input } }, { say: "spawned" }],
    },
  ];
}

async function kidTold(
  stage: Stage,
  agent: string,
  inherit: "brief" | "fork",
): Promise<readonly ModelMessage[]> {
  stage.model.play(rules(inherit));
  const client = await stage.start();
  const first = await stage.root(client, agent, "HEARD-BEFORE: say something");
  await allQuiet(client, first.id, AGENT_MS);
  await client.prompt({ id: first.id, prompt: "RAISE a kid" });
  await allQuiet(client, first.id, AGENT_MS);
  const kid = await childNamed(client, first.id, "kid");
  assert.equal(kid.outcome, "completed", `${kid.outcomeReason}`);
  return (await stage.asked("kid")).messages;
}

for (const agent of PARENT_NAMES) {
  describe(`${agent}, as a child that inherits`, { skip: missing(agent), concurrency: false }, () => {
    const proves = (name: string, run: (stage: Stage) => Promise<void>): void => {
      it(name, { timeout: 3 * AGENT_MS }, async () => {
        const stage = await Stage.open([agent], []);
        try {
          await run(stage);
        } finally {
          await stage.close();
        }
      });
    };

    proves("is told what its parent said just before it was spawned", async (stage) => {
      const told = (await kidTold(stage, agent, "brief")).map((message) => message.text).join("\n");
      const [, block = ""] = told.split("## Inherited from Parent Session");
      assert.match(block, /\n {2}agent: NEWEST-WORDS\n/);
    });

    // Only Claude Code exposes the summary. Codex keeps its summary to itself, and the other agents have no
    // update that would carry one.
    if (agent === "claude") {
      proves("passes on the summary that it has replaced its conversation by", async (stage) => {
        stage.model.play([{ name: "any", on: /HEARD/, steps: [{ say: "heard" }, { say: "THE-SUMMARY" }] }]);
        const client = await stage.start();
        const root = await stage.root(client, agent, "HEARD-BEFORE: say something");
        await allQuiet(client, root.id, AGENT_MS);
        await client.prompt({ id: root.id, prompt: "/compact" });
        await allQuiet(client, root.id, AGENT_MS);
        const { session } = await client.spawn({ id: root.id, prompt: "HEARD" });
        const { text } = await client.inspect({ id: session.id, view: "inherited" });
        assert.match(text, /\nCheckpoint:\n {2}THE-SUMMARY$/);
        await allQuiet(client, root.id, AGENT_MS);
      });
    }

    proves("begins with its parent's conversation, or is refused", async (stage) => {
      if (FORKS.has(agent)) {
        const messages = await kidTold(stage, agent, "fork");
        const at = (text: string): number => messages.findIndex((message) => message.text.includes(text));
        assert.ok(at("HEARD-BEFORE") !== -1 && at("HEARD-BEFORE") < at("KID-WORK"), JSON.stringify(messages));
        return;
      }
      stage.model.play(rules("fork"));
      const client = await stage.start();
      const root = await stage.root(client, agent, "HEARD-BEFORE: say something");
      await allQuiet(client, root.id, AGENT_MS);
      const asked = client.spawn({ id: root.id, prompt: "KID-WORK", inherit: "fork" });
      await assert.rejects(asked, { code: "cannot_fork" });
    });
  });
}
