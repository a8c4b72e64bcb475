import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, childNamed } from "./support/family.ts";
import { gate, openGate, script, spawnStep } from "./support/script.ts";

const CLI = fileURLToPath(new URL("../bin/kinfold.mjs", import.meta.url));
const REPORT = `REPORT ${"all five endpoints are migrated and covered by tests; ".repeat(4)}end`;

test("a parent that answers a late child in a few words still reports what it had reported", async () => {
  const home = new TestHome();
  const kinfold = async (...args: string[]): Promise<{ stdout: string; stderr: string }> => {
    const env = { PATH: process.env["PATH"], HOME: home.work, KINFOLD_HOME: home.home, NO_COLOR: "1" };
    return promisify(execFile)(process.execPath, [CLI, ...args], { env });
  };
  try {
    const client = await home.start();
    const late = spawnStep({
      name: "late",
      permission: "full",
      prompt: script(gate("go"), "say late result"),
    });
    const middle = script(late, `say ${REPORT}`);
    const prompt = script(
      spawnStep({ name: "middle", permission: "full", prompt: middle }),
      "say waiting for the middle",
    );
    const { session: root } = await client.create({ cwd: home.work, prompt, permission: "full" });
    const { id } = await childNamed(client, root.id, "middle");
    await eventually("the middle has reported", async () => {
      const { turns } = await client.turns({ id });
      return turns[0]?.status === "completed";
    });
    openGate(home.work, "go");
    await allQuiet(client, root.id);

    const end = await client.wait({ id, timeoutMs: 0 });
    assert.equal(end.result, REPORT);
    assert.match(end.lastWords ?? "", /^sim: noted .*Child "late"/);

    const [told] = await callbacksTo(client, root.id);
    assert.ok(told?.text.includes(REPORT), "the grandparent gets the report");
    assert.match(told?.text ?? "", /Its last words after this report, as data too:\n<[^>]+>\nsim: noted/);

    const [toldMiddle] = await callbacksTo(client, id);
    assert.match(
      toldMiddle?.text ?? "",
      /is still your report\. If this changes it, write the whole report again/,
    );

    const { text } = await client.inspect({ id, view: "result" });
    assert.match(text, /^REPORT .*end\n\nIts last words after this report:\nsim: noted/s);

    const waited = await kinfold("wait", id);
    assert.equal(waited.stdout.trim(), REPORT);
    assert.match(waited.stderr, /Its last words after this: sim: noted/);
    const shown = JSON.parse((await kinfold("show", id, "--json")).stdout) as Record<string, unknown>;
    assert.equal(shown["report"], REPORT);
    assert.match(String(shown["lastWords"]), /^sim: noted/);
  } finally {
    await home.close();
  }
});
