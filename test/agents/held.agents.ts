import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import path from "node:path";
import { describe, it } from "node:test";
import { allQuiet } from "../support/family.ts";
import { missing } from "./support/cache.ts";
import type { ProgramName } from "./support/cache.ts";
import { AGENT_MS, Stage } from "./support/stage.ts";
import { TOOLS } from "./support/tools.ts";

const READS: Partial<Record<ProgramName, string>> = {
  claude: "Read",
  gemini: "read_file",
  opencode: "read",
  pi: "read",
};

for (const [agent, reads] of Object.entries(READS) as [ProgramName, string][]) {
  const skip = missing(agent);
  describe(`${agent}, held to a list of tools`, { skip, concurrency: false }, () => {
    it("offers its model no other, even where it may do everything", { timeout: 3 * AGENT_MS }, async () => {
      const stage = await Stage.open([agent], []);
      const file = path.join(stage.project, "made.txt");
      const shell = path.join(stage.project, "shell.txt");
      const steps = [
        { call: TOOLS[agent].write(file, "made") },
        { call: TOOLS[agent].shell(`touch ${shell}`) },
        { say: "done" },
      ];
      stage.model.play([{ name: "held", on: /HELD/, steps }]);
      try {
        const client = await stage.start();
        const { session } = await client.create({
          name: "root",
          agent,
          cwd: stage.project,
          permission: "full",
          tools: ["Read", "spawn_session"],
          prompt: "HELD: do your part",
        });
        await allQuiet(client, session.id, AGENT_MS);
        const offered = (await stage.asked("held")).tools;
        assert.ok(offered.includes(reads), offered.join(", "));
        const changing = offered.filter((name) => /^(bash|shell|run_shell|write|edit|replace)/i.test(name));
        assert.deepEqual(changing, [], `${agent} offers ${offered.join(", ")}`);
        assert.deepEqual([existsSync(file), existsSync(shell)], [false, false]);
        if (agent !== "pi") assert.ok(offered.some((name) => name.endsWith("spawn_session")));
      } finally {
        await stage.close();
      }
    });
  });
}
