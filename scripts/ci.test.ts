import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";

const made: string[] = [];
after(() => made.forEach((root) => rmSync(root, { recursive: true, force: true })));

const MACHINE = "load [\\d., ]+ on \\d+ cores, free disk [\\d.]+ GB, free memory (?:[\\d.]+ GB|unknown)";

/** Runs `.ci/run` in a repository whose npm commands are these shell commands. */
function runCi(scripts: Readonly<Record<string, string>>): { code: number | null; lines: string[] } {
  const root = mkdtempSync(join(tmpdir(), "kinfold-ci-"));
  made.push(root);
  mkdirSync(join(root, ".ci"));
  cpSync(fileURLToPath(new URL("../.ci/run", import.meta.url)), join(root, ".ci/run"));
  writeFileSync(join(root, "package.json"), JSON.stringify({ name: "kinfold", scripts }));
  const git = (...args: string[]): void => {
    const by = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    const { status, stderr } = spawnSync("git", [...by, ...args], { cwd: root, encoding: "utf8" });
    assert.equal(status, 0, stderr);
  };
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message", "Start");
  const { status, stdout } = spawnSync("bash", [join(root, ".ci/run")], { encoding: "utf8" });
  return { code: status, lines: stdout.trim().split("\n") };
}

describe(".ci/run", { skip: process.platform === "win32" ? "it is a bash script" : false }, () => {
  it("prints the machine at the beginning and the end, and the time and processor time of each part", () => {
    const busy = `node -e "for (let n = 0; process.cpuUsage().user < 1_500_000; ) for (let i = 0; i < 1e7; i += 1) n += i;"`;
    const { code, lines } = runCi({ check: "echo a", test: busy, "test:long": "echo c" });
    assert.equal(code, 0, lines.join("\n"));
    assert.match(lines[0] ?? "", new RegExp(`^start: ${MACHINE}$`));
    assert.match(lines.at(-2) ?? "", new RegExp(`^end: ${MACHINE}$`));
    const time = "\\d+ s \\(processor \\d+ s\\)";
    const part = "check \\(with the installation\\)";
    assert.match(
      lines.at(-1) ?? "",
      new RegExp(`^times: ${part} ${time}, test ${time}, test:long ${time}, together \\d+ s$`),
    );
    assert.doesNotMatch(lines.at(-1) ?? "", /, test \d+ s \(processor 0 s\)/);
  });

  it("ends a red run with the name of the part and of what failed in it", () => {
    const failing = "echo 'failed: a.test.ts: a rule'; echo more; echo 'failed: b.test.ts: b'; exit 3";
    const { code, lines } = runCi({ check: "true", test: failing, "test:long": "echo never" });
    assert.equal(code, 3);
    assert.deepEqual(lines.slice(-3), [
      ".ci/run failed in test (exit 3):",
      "failed: a.test.ts: a rule",
      "failed: b.test.ts: b",
    ]);
    assert.match(lines.at(-5) ?? "", /^end: /);
    assert.ok(!lines.includes("never"));
  });

  it("names at the end of a green run the tests that passed only when run again", () => {
    const doubtful = "passed only when run again: a.test.ts: a rule";
    const { code, lines } = runCi({ check: "true", test: `echo '${doubtful}'`, "test:long": "true" });
    assert.equal(code, 0);
    assert.equal(lines.at(-1), doubtful);
  });

  it("ends with the last output of a part that failed without naming anything", () => {
    const { code, lines } = runCi({ check: "echo npm was not found >&2; exit 1" });
    assert.notEqual(code, 0);
    assert.match(lines.join("\n"), /\.ci\/run failed in check [^]*npm was not found[^]*$/);
  });
});
