import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, it } from "node:test";
import { slowness } from "./slowness.ts";

const MODULE = new URL("./test-run.mjs", import.meta.url).href;

/** A run with one process, which starts a detached process with an empty environment and then waits. */
const SCRIPT = `
const { TestRun } = await import(${JSON.stringify(MODULE)});
const { spawn } = await import("node:child_process");
const { existsSync, readFileSync } = await import("node:fs");
const run = new TestRun(() => 0.05);
const pids = process.argv[1];
spawn("/bin/sh", ["-c", 'env -i setsid sleep 300 & echo $$ $! > "$0"; wait', pids], {
  detached: true, stdio: "ignore", env: { ...process.env, ...run.env },
}).unref();
while (!existsSync(pids) || readFileSync(pids, "utf8").trim() === "") await new Promise((r) => setTimeout(r, 10));
console.log(JSON.stringify(await run.clean()));
`;

describe("a run of tests", { skip: process.platform === "linux" ? false : "it reads /proc" }, () => {
  it("ends and names every process that it left behind, and what that started with a cleared environment", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kinfold-run-test-"));
    try {
      const pids = join(folder, "pids");
      const child = spawn(process.execPath, ["--input-type=module", "-e", SCRIPT, pids]);
      const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
      assert.equal(err, "");
      const left = JSON.parse(out) as { pid: number }[];
      const started = readFileSync(pids, "utf8").trim().split(" ");
      assert.deepEqual(left.map(({ pid }) => String(pid)).toSorted(), started.toSorted());
      for (const pid of started) assert.ok(isGone(pid), `process ${pid} is still there`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("measures a slowness of at least 1 and of at most 20", () => {
    const measured = slowness();
    assert.ok(measured >= 1 && measured <= 20, String(measured));
  });
});

function isGone(pid: string): boolean {
  if (!existsSync(`/proc/${pid}`)) return true;
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
}
