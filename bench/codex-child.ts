import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { codex } from "../src/drivers/vendors/codex/codex.ts";
import { locateAdapter } from "../src/drivers/vendors/index.ts";
import { adaptersDir, missing, programPath } from "../test/agents/support/cache.ts";
import { Stage } from "../test/agents/support/stage.ts";
import { eventually } from "../test/support/daemon.ts";
import type { Client } from "../test/support/daemon.ts";
import { atMost, type Measurement } from "./measurement.ts";
import { median, timeMs } from "./sample.ts";

const ROUNDS = 9;
const WARM = 2;

/**
 * Measures the time from the call that spawns a Codex child until the child's first request to its model. For
 * comparison, also measures `codex exec` run by hand with the same home and model, and how long the adapter
 * alone takes to answer `initialize`. The three measurements alternate.
 */
export const codexChild: Measurement = {
  name: "codex-child",
  skip: () => (process.platform === "linux" ? missing("codex") : "it looks for processes in /proc"),
  async run() {
    const stage = await Stage.open(["codex"], [{ name: "work", on: /WORK-/, steps: [{ say: "done" }] }]);
    try {
      const client = await stage.start();
      const root = await stage.root(client, "sim", "sim> hang");
      const taken: Record<"managed" | "byHand" | "adapter", number[]> = {
        managed: [],
        byHand: [],
        adapter: [],
      };
      for (let round = -WARM; round < ROUNDS; round++) {
        const managed = await managedChild(stage, client, root.id);
        const byHand = await execByHand(stage);
        const adapter = await adapterAlone(stage);
        if (round < 0) continue;
        taken.managed.push(managed);
        taken.byHand.push(byHand);
        taken.adapter.push(adapter);
      }
      const value = median(
        taken.managed.map((managed, at) => (managed - taken.adapter[at]!) / taken.byHand[at]!),
      );
      const [managed, byHand, adapter] = [taken.managed, taken.byHand, taken.adapter].map((each) =>
        median(each).toFixed(0),
      );
      const note = `${managed} ms, of which ${adapter} ms are the adapter's own start, against ${byHand} ms of codex exec by hand`;
      const what = "Codex child → model asked";
      return [{ what, value, unit: "times", goal: atMost(1.3), note }];
    } finally {
      await stage.close();
    }
  },
};

let count = 0;

/** Returns a word that is put into one prompt only, so that the request with that prompt can be found. */
function newMark(): string {
  count += 1;
  return `WORK-${count}-`;
}

async function managedChild(stage: Stage, client: Client, id: string): Promise<number> {
  const mark = newMark();
  const from = performance.now();
  const { session } = await client.spawn({ id, agent: "codex", prompt: `${mark} Say that you are done.` });
  const at = await askedAt(stage, mark);
  await client.waitFor(session.id);
  await client.cancel({ id: session.id });
  return at - from;
}

async function execByHand(stage: Stage): Promise<number> {
  const mark = newMark();
  const from = performance.now();
  const words = ["exec", "--skip-git-repo-check", `${mark} Say that you are done.`];
  const child = spawn(programPath("codex"), words, {
    cwd: stage.project,
    env: stage.agentEnv,
    stdio: ["ignore", "ignore", "ignore"],
  });
  const gone = once(child, "exit");
  const at = await askedAt(stage, mark);
  await gone;
  return at - from;
}

async function askedAt(stage: Stage, mark: string): Promise<number> {
  const asked = await eventually(`the model was asked about ${mark}`, async () =>
    stage.model.asked.find((one) => one.messages.some((message) => message.text.includes(mark))),
  );
  return asked.at;
}

async function adapterAlone(stage: Stage): Promise<number> {
  if (!("adapter" in codex.speaks)) throw new Error("Codex has an adapter");
  const located = locateAdapter(codex.speaks.adapter, { agentsDir: adaptersDir() });
  if ("problem" in located) throw new Error(located.problem);
  let child: ChildProcess | null = null;
  const tookMs = await timeMs(async () => {
    child = spawn(process.execPath, [located.path], {
      cwd: stage.project,
      env: { ...stage.agentEnv, CODEX_PATH: programPath("codex"), NO_BROWSER: "1" },
      stdio: ["pipe", "pipe", "ignore"],
    });
    child.stdin?.write(`${JSON.stringify(INITIALIZE)}\n`);
    await once(child.stdout!, "data");
  });
  const started = child as ChildProcess | null;
  if (started !== null) {
    const gone = once(started, "exit");
    started.kill("SIGTERM");
    await gone;
  }
  return tookMs;
}

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: 1, clientCapabilities: {}, clientInfo: { name: "kinfold", version: "1.0.0" } },
};
