import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { after, describe, it } from "node:test";
import { eventually } from "../support/daemon.ts";
import type { Client } from "../support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants, childNamed } from "../support/family.ts";
import type { Rule } from "./model/script.ts";
import { missing } from "./support/cache.ts";
import { Cells } from "./support/cells.ts";
import type { Row } from "./support/cells.ts";
import { AGENT_MS, processesWith, Stage, timesTold } from "./support/stage.ts";
import { TOOLS } from "./support/tools.ts";

const skip = missing("pi");
const LIMIT = { timeout: 3 * AGENT_MS };

/** pi cannot use our tools, so it cannot be a parent. Its parent here is sim. */
describe("pi as a child", { skip, concurrency: false }, () => {
  const cells = new Cells("pi");
  after(() => cells.save());
  const on = async (
    rows: readonly Row[],
    rules: readonly Rule[],
    run: (stage: Stage) => Promise<string | void>,
  ): Promise<void> => {
    const stage = await Stage.open(["pi"], rules);
    try {
      const note = await run(stage);
      cells.note({ child: rows }, true, note ?? "");
    } catch (error) {
      cells.note({ child: rows }, false, error instanceof Error ? error.message : String(error));
      throw error;
    } finally {
      await stage.close();
    }
  };
  const raise = (stage: Stage, client: Client, more: object = {}) => {
    const own = { name: "kid", agent: "pi", prompt: "KID-WORK: do it", inherit: "none" };
    const kid = JSON.stringify({ ...own, ...more });
    return stage.root(client, "sim", `sim> tool spawn_session ${kid}\nsim> say spawned`);
  };
  const done = { say: "pi has done its part" };

  it("works with its own tools and calls back, with what it used", LIMIT, () =>
    on(["reports its result once", "leaves no token in a command line"], [], async (stage) => {
      const file = path.join(stage.project, "made.txt");
      const steps = [{ call: TOOLS.pi.write(file, "made") }, { call: TOOLS.pi.shell("exit 3") }, done];
      stage.model.play([{ name: "kid", on: /KID-WORK/, steps }]);
      const client = await stage.start();
      const root = await raise(stage, client);
      const sessions = await allQuiet(client, root.id, AGENT_MS);
      const kid = sessions.find((each) => each.name === "kid")!;
      assert.deepEqual([kid.agent, kid.outcome, kid.model], ["pi", "completed", "scripted/m1"]);
      assert.equal(readFileSync(file, "utf8").trim(), "made");
      assert.equal(kid.usage.inputTokens, 300);
      const [callback] = await callbacksTo(client, root.id);
      assert.match(callback?.text ?? "", /pi has done its part/);
      const { text } = await client.transcript({ id: kid.id });
      assert.match(text, /exit 3/);
      assert.deepEqual(stage.tokensInCommandLines(), []);
      await checkInvariants(client, root.id);
    }),
  );

  it("takes a message while it works", LIMIT, () =>
    on(
      ["takes a message while it works"],
      [
        { name: "steered", on: /LOOK-HERE/, steps: [{ say: "looked" }] },
        { name: "kid", on: /KID-WORK/, steps: [{ call: TOOLS.pi.shell("sleep 3; echo slept") }, done] },
      ],
      async (stage) => {
        const client = await stage.start();
        const root = await raise(stage, client);
        await eventually("its command runs", async () => processesWith("echo slept").length > 0, AGENT_MS);
        const kid = await childNamed(client, root.id, "kid");
        await client.tell({ id: kid.id, message: "LOOK-HERE now", deliverAs: "steer" });
        await allQuiet(client, root.id, AGENT_MS);
        assert.equal(timesTold(await stage.asked("steered"), "LOOK-HERE"), 1);
        await checkInvariants(client, root.id);
        const { messages } = await client.inbox({ id: kid.id, all: true });
        const message = messages.find((one) => one.body?.includes("LOOK-HERE") ?? false);
        return String(message?.metadata["delivered"] ?? "?");
      },
    ),
  );

  it("is cancelled with its shell commands", LIMIT, () =>
    on(["is cancelled with its shell commands"], [], async (stage) => {
      const mark = `MARK-pi-${process.pid}`;
      const shell = { call: TOOLS.pi.shell(`tail -f /dev/null; echo ${mark}`) };
      stage.model.play([{ name: "kid", on: /KID-WORK/, steps: [shell, done] }]);
      const client = await stage.start();
      const root = await raise(stage, client);
      await eventually("its command runs", async () => processesWith(mark).length > 0, AGENT_MS);
      await client.cancel({ id: root.id });
      await eventually("all has stopped", async () => stage.home.agents().length === 0, 30_000);
      assert.deepEqual(processesWith(mark), []);
    }),
  );

  it("fails when its model fails", LIMIT, () =>
    on(
      ["fails when its model fails"],
      [{ name: "kid", on: /KID-WORK/, steps: [{ error: { status: 400, message: "refused" } }] }],
      async (stage) => {
        const client = await stage.start();
        const root = await raise(stage, client);
        const sessions = await allQuiet(client, root.id, AGENT_MS);
        assert.equal(sessions.find((each) => each.name === "kid")?.outcome, "failed");
      },
    ),
  );

  const hang = { say: "this begins and does not end", hang: true };
  const cuts = {
    "before its first answer": [hang],
    "after it": [{ call: TOOLS.pi.shell("echo begun") }, hang],
  };
  for (const [when, steps] of Object.entries(cuts)) {
    it(`is resumed after the daemon was killed ${when}, with its prompt once`, LIMIT, () =>
      on(
        ["is resumed after SIGKILL, every message once"],
        [{ name: "kid", on: /KID-WORK/, steps }],
        async (stage) => {
          const before = await stage.start();
          const root = await raise(stage, before);
          await stage.asked("kid", steps.length - 1);
          await othersQuiet(before, root.id, "kid");
          await stage.home.kill();
          stage.model.play([
            { name: "cut", on: /turn was cut/, steps: [done] },
            { name: "kid", on: /KID-WORK/, steps: [done] },
          ]);
          const client = await stage.start();
          const sessions = await allQuiet(client, root.id, AGENT_MS);
          assert.equal(sessions.find((each) => each.name === "kid")?.outcome, "completed");
          assert.equal(timesTold(stage.model.asked.at(-1)!, "KID-WORK"), 1);
          assert.equal((await callbacksTo(client, root.id)).length, 1);
          await checkInvariants(client, root.id);
        },
      ),
    );
  }

  it("is not started in a mode that nothing would hold it to", LIMIT, () =>
    on([], [], async (stage) => {
      const client = await stage.start();
      const root = await raise(stage, client, { permission: "ask" });
      const sessions = await allQuiet(client, root.id, AGENT_MS);
      const kid = sessions.find((each) => each.name === "kid");
      assert.notEqual(kid?.outcome, "completed");
      assert.deepEqual(stage.model.asked, []);
    }),
  );
});

/** Waits until every session except the named one has stopped running. */
async function othersQuiet(client: Client, id: string, name: string): Promise<void> {
  await eventually("the others are quiet", async () => {
    const { sessions } = await client.tree({ id });
    return sessions.every((each) => each.name === name || each.status !== "running");
  });
}
