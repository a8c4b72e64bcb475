import { after, describe, it } from "node:test";
import type { TestContext } from "node:test";
import * as scenarios from "./scenarios.ts";
import type { Ends } from "./scenarios.ts";
import { missing } from "./support/cache.ts";
import type { ProgramName } from "./support/cache.ts";
import { Cells } from "./support/cells.ts";
import type { Role, Row } from "./support/cells.ts";
import { Stage } from "./support/stage.ts";

const TEST_MS = 400_000;

/** Tests what every real agent must do as a parent and as a child. Here both are the same agent. */
export function contract(agent: ProgramName): void {
  describe(`${agent} at both ends`, { skip: missing(agent), concurrency: false }, () => {
    const cells = new Cells(agent);
    after(() => cells.save());

    const proves = (
      name: string,
      rows: Partial<Record<Role, readonly Row[]>>,
      run: (stage: Stage, ends: Ends) => Promise<string | void>,
    ): void => {
      it(name, { timeout: TEST_MS }, async (context: TestContext) => {
        const stage = await Stage.open([agent], []);
        try {
          const note = await run(stage, { parent: agent, kid: agent });
          await stage.close();
          cells.note(rows, true, note ?? "");
        } catch (error) {
          cells.note(rows, false, error instanceof Error ? error.message : String(error));
          for (const one of stage.model.asked) context.diagnostic(`${one.rule}#${one.step} ${one.answer}`);
          await stage.close();
          throw error;
        }
      });
    };

    proves(
      "raises a child and is called back while it is idle",
      {
        parent: [
          "sees and calls the tools",
          "spawns",
          "is called back while idle",
          "leaves no token in a command line",
        ],
        child: ["sees and calls the tools", "reports its result once", "leaves no token in a command line"],
      },
      scenarios.calledBack,
    );
    proves("waits for its child and is not told again", { parent: ["waits"] }, scenarios.waits);
    proves(
      "takes a message while it works, and says how",
      { child: ["takes a message while it works"] },
      scenarios.takesMessage,
    );
    proves(
      "asks a question that its parent answers",
      {
        parent: ["asks a question that its parent answers"],
        child: ["asks a question that its parent answers"],
      },
      scenarios.asks,
    );
    proves(
      "has a permission request answered by its parent",
      { parent: ["has a permission request answered"], child: ["has a permission request answered"] },
      scenarios.permitted,
    );
    proves(
      "is cancelled with its shell commands",
      {
        parent: ["is cancelled with its shell commands"],
        child: ["is cancelled with its shell commands"],
      },
      scenarios.cancelled,
    );
    proves("fails when its model fails", { child: ["fails when its model fails"] }, scenarios.fails);
    proves(
      "is resumed after the daemon was killed, with every message once",
      {
        parent: ["is resumed after SIGKILL, every message once"],
        child: ["is resumed after SIGKILL, every message once"],
      },
      scenarios.resumed,
    );
  });
}
