import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { after, before, describe, it } from "node:test";
import { CliHome, MAIN } from "./testing/process.ts";

const cli = new CliHome();

/** Runs a command on a new pseudo-terminal and answers its question with `answer`. */
async function onTerminal(command: string, answer: string): Promise<string> {
  const line = `'${process.execPath}' '${MAIN}' ${command}`;
  const child = spawn("script", ["-qec", line, "/dev/null"], { env: { ...cli.env, NO_COLOR: "1" } });
  let out = "";
  let isAnswered = false;
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString("utf8");
    if (isAnswered || !out.includes("[y/N] ")) return;
    isAnswered = true;
    child.stdin.write(`${answer}\n`);
  });
  await new Promise((resolve) => child.once("close", resolve));
  return out;
}

describe("cancel on a terminal", { skip: whyNot() }, () => {
  before(async () => assert.equal((await cli.run(["up", "--port", "0"])).code, 0));
  after(async () => {
    await cli.run(["down", "--force"]);
    cli.remove();
  });

  it("says what it will close before it does so, and does nothing without a yes", async () => {
    assert.equal((await cli.run(["run", "--agent", "sim", "--name", "over", "sim> say done"])).code, 0);
    const asked = await onTerminal("cancel over", "n");
    assert.match(
      asked,
      /Nothing is at work\. Closes 1 finished session\. Closed sessions accept no messages until you reopen them\. Continue\? \[y\/N\]/,
    );
    assert.match(asked, /Nothing was stopped\./);
    assert.doesNotMatch((await cli.run(["ls", "--status", "ended"])).out, /over/);
    assert.match(await onTerminal("cancel over", "y"), /1 finished session closed/);
    assert.match((await cli.run(["ls", "--status", "ended"])).out, /over/);
  });
});

function whyNot(): string | false {
  try {
    execFileSync("script", ["-qec", "true", "/dev/null"], { stdio: "ignore" });
    return false;
  } catch {
    return "script of util-linux is not here to make a terminal";
  }
}
