import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { text } from "node:stream/consumers";
import { processStart } from "../system/process-start.ts";
import { CliHome, MAIN } from "./testing/process.ts";

const cli = new CliHome();
const { home } = cli;
after(() => cli.remove());

const kinfold = (args: readonly string[], options: { env?: NodeJS.ProcessEnv; input?: string } = {}) =>
  cli.run(args, options);

describe("a person's mistakes are answered with what to do next", () => {
  it("an unknown command names the nearest", async () => {
    const { code, err } = await kinfold(["spwan", "hello"]);
    assert.equal(code, 2);
    assert.match(err, /There is no command "spwan"\.\n {2}Did you mean: kinfold spawn\n/);
  });
  it("an unknown option names the nearest and the help", async () => {
    const { code, err } = await kinfold(["ls", "--unsen"]);
    assert.equal(code, 2);
    assert.match(err, /--unseen/);
    assert.match(err, /kinfold ls --help/);
  });
  it("an unknown option of bare kinfold is refused, not ignored", async () => {
    const { code, err } = await kinfold(["--jsn"]);
    assert.equal(code, 2);
    assert.match(err, /There is no option --jsn/);
  });
  it("a missing prompt gets an example", async () => {
    const { code, err } = await kinfold(["spawn", "--name", "x", "-"]);
    assert.equal(code, 2);
    assert.match(err, /Example: kinfold spawn/);
  });
  it("a missing session gets an example", async () => {
    const { code, err } = await kinfold(["show"]);
    assert.equal(code, 2);
    assert.match(err, /Missing required argument 'session'.*\n {2}Example: kinfold show/);
  });
  it("a bad value says how to write it", async () => {
    assert.match((await kinfold(["wait", "x", "--timeout", "soon"])).err, /90s, 30m or 2h/);
    assert.match((await kinfold(["up", "--port", "http"])).err, /whole number/);
    assert.match((await kinfold(["up", "--port", "99999"])).err, /from 0 to 65535/);
    assert.match(
      (await kinfold(["spawn", "--permission", "all", "x"])).err,
      /read-only, ask, workspace, full/,
    );
    assert.match((await kinfold(["completion", "csh"])).err, /bash, zsh, fish/);
  });
  it("no daemon: says how to start it, with its own exit code", async () => {
    for (const args of [
      ["ls"],
      ["tree"],
      ["show", "x"],
      ["watch"],
      ["cancel", "x"],
      ["tell", "x", "hi"],
      ["backup", join(home, "b.db")],
    ]) {
      const { code, err } = await kinfold(args);
      assert.equal(code, 6, args.join(" "));
      assert.equal(err, "The daemon is not running. Start it: kinfold up\n");
    }
  });
  it("with --json a mistake is JSON on standard output", async () => {
    const { code, out, err } = await kinfold(["ls", "--json"]);
    assert.equal(code, 6);
    assert.equal(err, "");
    assert.equal((JSON.parse(out) as { error: { code: string } }).error.code, "daemon_not_running");
  });
  it("a backup never overwrites", async () => {
    const file = join(home, "taken.db");
    writeFileSync(file, "");
    const { code, err } = await kinfold(["backup", file]);
    assert.equal(code, 2);
    assert.match(err, /already exists; a backup never overwrites/);
  });
  it("a bad configuration names file and line", async () => {
    const bad = mkdtempSync(join(tmpdir(), "kinfold-bad-"));
    writeFileSync(join(bad, "kinfold.yaml"), "host: 127.0.0.1\nport: many\n");
    const { code, err } = await kinfold(["config"], { env: { KINFOLD_HOME: bad } });
    rmSync(bad, { recursive: true });
    assert.equal(code, 2);
    assert.match(err, /kinfold\.yaml:2: port/);
    assert.match(err, /kinfold config edit/);
  });
});

describe("what answers at the address", () => {
  it("must be a Kinfold daemon", async () => {
    const server = createServer((_, response) => response.end("<html>hello</html>"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const { code, err } = await kinfold(["ls"], {
      env: { KINFOLD_URL: `http://127.0.0.1:${port}`, KINFOLD_TOKEN: "x" },
    });
    server.close();
    assert.equal(code, 6);
    assert.match(err, /is not a Kinfold daemon/);
  });
  it("must speak our contract, else a restart is advised", async () => {
    const health = {
      ok: true,
      version: "0.0.1",
      contract: "0.9.0",
      boot: "b",
      pid: 1,
      startedAt: 0,
      counts: {},
    };
    const server = createServer((_, response) =>
      response.setHeader("content-type", "application/json").end(JSON.stringify(health)),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const { code, err } = await kinfold(["ls"], {
      env: { KINFOLD_URL: `http://127.0.0.1:${port}`, KINFOLD_TOKEN: "x" },
    });
    server.close();
    assert.equal(code, 2);
    assert.match(err, /version 0\.0\.1 \(contract 0\.9\.0\)/);
    assert.match(err, /kinfold down && kinfold up/);
  });
  it("is named if nothing answers", async () => {
    const { code, err } = await kinfold(["ls"], {
      env: { KINFOLD_URL: "http://127.0.0.1:9", KINFOLD_TOKEN: "x" },
    });
    assert.equal(code, 6);
    assert.match(err, /Nothing answers at http:\/\/127\.0\.0\.1:9 \(KINFOLD_URL\)/);
  });
  it("a record of a daemon that has died counts as not running", async () => {
    writeFileSync(
      join(home, "daemon.json"),
      JSON.stringify({ pid: 2 ** 22 - 3, url: "http://127.0.0.1:9", startedAt: 0, boot: "b" }),
    );
    writeFileSync(join(home, "token"), "x", { mode: 0o600 });
    assert.match((await kinfold(["ls"])).err, /^The daemon is not running/);
    assert.match((await kinfold(["down"])).out, /^The daemon is not running/);
    rmSync(join(home, "daemon.json"));
  });
  it("down does not stop another program that has the recorded pid", async () => {
    await withForeignProcess(async (pid) => {
      record({ pid });
      const { code, err } = await kinfold(["down"]);
      assert.equal(code, 1);
      assert.match(err, /was not stopped/);
    });
  });
  it("another program that got the daemon's pid later is not the daemon, whatever its command line says", async () => {
    await withForeignProcess(async (pid) => {
      record({ pid, processStart: `${processStart(process.pid)}0` });
      const { code, out } = await kinfold(["down", "--force"]);
      assert.equal(code, 0);
      assert.match(out, /^The daemon is not running/);
      assert.match((await kinfold(["ls"])).err, /^The daemon is not running/);
    });
  });
  it("down stops a daemon that does not answer if its process has the recorded start time", async () => {
    const silent = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    const gone = once(silent, "exit");
    await once(silent, "spawn");
    record({ pid: silent.pid, processStart: processStart(silent.pid!) });
    const { code, err } = await kinfold(["down"]);
    if (code !== 0) silent.kill();
    assert.equal(code, 0, err);
    assert.deepEqual(await gone, [null, "SIGTERM"]);
    rmSync(join(home, "daemon.json"));
  });
});

function record(daemon: object): void {
  const whole = { url: "http://127.0.0.1:9", startedAt: 0, boot: "b", ...daemon };
  writeFileSync(join(home, "daemon.json"), JSON.stringify(whole));
}

/**
 * Calls `act` while a foreign program runs that has our name on its command line. Checks that `act` has not
 * ended that program.
 */
async function withForeignProcess(act: (pid: number) => Promise<void>): Promise<void> {
  const words = ["-e", "setInterval(() => {}, 1000)", "src/kinfold/daemon.ts", "kinfold"];
  const other = spawn(process.execPath, words, { stdio: "ignore" });
  const gone = once(other, "exit");
  try {
    await once(other, "spawn");
    await act(other.pid!);
    assert.equal(other.exitCode ?? other.signalCode, null);
  } finally {
    other.kill();
    await gone;
    rmSync(join(home, "daemon.json"));
  }
}

describe("output", () => {
  it("has no escape sequences in a pipe", async () => {
    for (const args of [[], ["--help"], ["doctor"], ["config"], ["paths"]]) {
      // oxlint-disable-next-line no-control-regex -- Escape sequences are what this looks for.
      assert.doesNotMatch((await kinfold(args)).out, /\u001b/, args.join(" "));
    }
  });
  it("ends quietly when its reader goes away", async () => {
    const child = spawn(
      "bash",
      ["-c", `"$0" "$1" config | head -1; echo "\${PIPESTATUS[0]}"`, process.execPath, MAIN],
      {
        env: cli.env,
      },
    );
    const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
    assert.equal(err, "");
    assert.match(out, /^SETTING.*\n0\n$/);
  });
  it("bare kinfold without a daemon teaches the first steps", async () => {
    const { code, out } = await kinfold([]);
    assert.equal(code, 0);
    assert.match(out, /^kinfold \d+\.\d+\.\d+ {3}daemon not running\n/);
    assert.match(out, /Try it first: kinfold demo/);
  });
  it("help documents the exit codes", async () => {
    const { code, out } = await kinfold(["run", "--help"]);
    assert.equal(code, 0);
    assert.match(
      out,
      /Exit codes:\n {2}0 {2}done.*\n {2}1 {2}failed\n {2}2 {2}refused.*\n {2}3 {2}cancelled\n {2}4 {2}interrupted\n {2}5 {2}timed out/,
    );
  });
});
