import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Agent } from "../src/contract/index.ts";
import { type Client, TestHome } from "./support/daemon.ts";
import { quiet } from "./support/family.ts";

const SIM = fileURLToPath(new URL("../src/drivers/sim/agent.ts", import.meta.url));

describe("agents that come while the daemon runs", () => {
  const home = new TestHome({ yaml: JSON.stringify({ agents: { late: { command: ["late-agent"] } } }) });
  const bin = path.join(home.work, "bin");
  let client: Client;
  before(async () => {
    mkdirSync(bin);
    // Only this folder is on the PATH, so that agents installed on this machine are not found.
    client = await home.start({ env: { PATH: bin } });
  });
  after(() => home.close());

  const program = (name: string, text: string): void =>
    writeFileSync(path.join(bin, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const found = async (name: string): Promise<Agent | undefined> =>
    (await client.agents({})).agents.find((agent) => agent.name === name);

  test("one that was not installed is refused, and started by the next spawn after it was", async () => {
    const work = { agent: "late", cwd: home.work, prompt: "hello" };
    await assert.rejects(client.create(work), { code: "agent_not_installed" });
    program("late-agent", `KINFOLD_SIM_DIR=${home.work}/late exec ${process.execPath} ${SIM}`);
    const { session } = await client.create(work);
    const ended = await quiet(client, session.id);
    assert.deepEqual([ended.agent, ended.outcome], ["late", "completed"]);
  });

  test("a probe reports what is missing now: the program, then its account, then nothing", async () => {
    const codex = path.join(home.work, ".codex");
    assert.match((await found("codex"))?.howToInstall ?? "", /npm install -g @openai\/codex/);
    program("codex", "echo codex 7.8.9");
    const withProgram = await found("codex");
    assert.deepEqual([withProgram?.installed, withProgram?.version], [false, "7.8.9"]);
    assert.equal(withProgram?.howToInstall, "kinfold agents add codex");
    addAdapter();
    const signedOut = await found("codex");
    assert.deepEqual([signedOut?.installed, signedOut?.signedIn], [true, false]);
    assert.equal(signedOut?.howToSignIn, "run: codex login");
    mkdirSync(codex);
    writeFileSync(path.join(codex, "auth.json"), "{}");
    const well = await found("codex");
    assert.deepEqual([well?.signedIn, well?.problem], [true, null]);
    assert.match(well?.uses ?? "", /bin\/codex through Kinfold's adapter 2\.6\.0/);
  });

  /** Installs what `kinfold agents add codex` would. */
  function addAdapter(): void {
    const folder = path.join(home.home, "agents/codex/node_modules/@agentclientprotocol/codex-acp");
    mkdirSync(path.join(folder, "dist"), { recursive: true });
    writeFileSync(path.join(folder, "dist", "index.js"), "");
    writeFileSync(path.join(folder, "package.json"), JSON.stringify({ version: "2.6.0" }));
  }
});
