import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import type { Check } from "./doctor/check.ts";
import { CliHome } from "./testing/process.ts";

const cli = new CliHome();
const bin = join(cli.person, "bin");
/** The environment of a machine that has only what a test puts on it. npm is not on its PATH. */
const env = { PATH: bin, OPENAI_API_KEY: "", CODEX_API_KEY: "", CODEX_HOME: "" };
after(() => cli.remove());
mkdirSync(bin);

const put = (file: string, text: string, mode = 0o644): void => {
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text, { mode });
};

async function checked(name: string): Promise<Check | undefined> {
  const { out } = await cli.run(["doctor", "--json"], { env });
  return (JSON.parse(out) as { checks: Check[] }).checks.find((check) => check.name === name);
}

describe("doctor, without a daemon", () => {
  it("lists for each agent what is installed, what would be used and what to do next", async () => {
    const adapter = join(cli.home, "agents/codex/node_modules/@agentclientprotocol/codex-acp");
    assert.deepEqual(words(await checked("codex")), [
      "not installed",
      "npm install -g @openai/codex && kinfold agents add codex",
    ]);
    put(join(bin, "codex"), "#!/bin/sh\necho codex 7.8.9\n", 0o755);
    assert.deepEqual(words(await checked("codex")), [
      "7.8.9: Kinfold's adapter for it is not installed",
      "kinfold agents add codex",
    ]);
    put(join(adapter, "dist/index.js"), "");
    put(join(adapter, "package.json"), JSON.stringify({ version: "2.6.0" }));
    assert.deepEqual(words(await checked("codex")), ["7.8.9: not signed in", "run: codex login"]);
    put(join(cli.person, ".codex/auth.json"), "{}");
    assert.deepEqual(words(await checked("codex")), [
      `7.8.9, signed in, ${join(bin, "codex")} through Kinfold's adapter 2.6.0`,
      null,
    ]);
  });

  it("names the agent of a session that names none", async () => {
    const check = await checked("default agent");
    assert.deepEqual([check?.ok, check?.text], [true, "sim"]);
    put(join(cli.home, "kinfold.yaml"), "agent: gemini\n");
    const missing = await checked("default agent");
    assert.deepEqual([missing?.ok, missing?.text], [false, "gemini is not installed"]);
    assert.match(missing?.advice ?? "", /^npm install .*, or set agent in kinfold\.yaml/);
  });

  it("says why the default agent cannot work, and how to fix it", async () => {
    const program = join(bin, "claude");
    put(program, "#!/bin/sh\necho 2.3.4\n", 0o755);
    put(join(cli.home, "kinfold.yaml"), "agent: claude\n");
    const bare = await checked("default agent");
    assert.equal(bare?.ok, false);
    assert.match(bare.text, /^claude 2\.3\.4: Kinfold's adapter for it is not installed$/);
    assert.match(bare.advice ?? "", /^kinfold agents add claude, or set agent/);
    rmSync(program);
    put(join(cli.home, "kinfold.yaml"), "agent: codex\n");
    rmSync(join(cli.person, ".codex"), { recursive: true });
    const { code, out } = await cli.run(["doctor"], { env });
    assert.notEqual(code, 0);
    assert.match(out, /default agent.*codex 7\.8\.9: not signed in/);
    assert.match(out, /run: codex login, or set agent/);
    assert.doesNotMatch(out, /All is well/);
    put(join(cli.person, ".codex/auth.json"), "{}");
    assert.equal((await checked("default agent"))?.ok, true);
  });
});

describe("kinfold agents add", () => {
  it("installs nothing if the adapter is already installed, and says whether the agent is ready", async () => {
    const { code, out } = await cli.run(["agents", "add", "codex"], { env });
    assert.equal(code, 0);
    assert.match(out, /adapter 2\.6\.0 is already installed\.\n {2}Ready: codex 7\.8\.9/);
  });

  it("says why it could not install, and changes nothing", async () => {
    // npm may be found beside Node, but it cannot download anything: nothing listens at this registry's
    // address.
    const { code, err } = await cli.run(["agents", "add", "claude"], {
      env: { ...env, npm_config_registry: "http://127.0.0.1:9/" },
    });
    assert.equal(code, 1);
    assert.match(err, /The adapter could not be installed: .*\n {2}Nothing was changed/);
    assert.equal((await checked("claude"))?.text, "not installed");
  });
});

function words(check: Check | undefined): unknown[] {
  return [check?.text, check?.advice];
}
