import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { changedSince, reachOf, readRepository } from "./reach.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Returns the test files that a change of `changed` reaches in a repository with these files. */
function reached(files: Readonly<Record<string, string>>, ...changed: string[]): string {
  const paths = Object.keys(files);
  const tests = paths.filter((path) => path.endsWith(".test.ts"));
  return reachOf({ paths, texts: new Map(Object.entries(files)) }, changed, tests).tests.join(" ");
}

describe("a change of a module", () => {
  const files = {
    "src/a/one.ts": "export const one = 1;",
    "src/a/two.ts": 'import { one } from "./one.ts";',
    "src/a/three.ts": 'export { two } from "../a/two.ts";',
    "src/a/one.test.ts": 'import { one } from "./one.ts";',
    "src/b/far.test.ts": 'import "../a/three.ts";',
    "src/b/other.test.ts": 'import type { One } from "../a/one.ts";\n// see "../a/one.ts"\n',
  };

  it("reaches its tests over any number of imports, but not over types and comments", () => {
    assert.equal(reached(files, "src/a/one.ts"), "src/a/one.test.ts src/b/far.test.ts");
    assert.equal(reached(files, "src/a/three.ts"), "src/b/far.test.ts");
  });

  it("of several reaches the tests of each, and of a test itself", () => {
    assert.equal(
      reached(files, "src/a/three.ts", "src/b/other.test.ts"),
      "src/b/far.test.ts src/b/other.test.ts",
    );
  });

  it("that was removed reaches what still imports it", () => {
    const { "src/a/one.ts": _, ...left } = files;
    assert.equal(reached(left, "src/a/one.ts"), "src/a/one.test.ts src/b/far.test.ts");
  });
});

describe("a module is reached", () => {
  for (const [how, text] of Object.entries({
    "by a dynamic import": 'await import("./worker.ts");',
    "by a dynamic import of a computed name": "await import(`./${name}.ts`);",
    "as a worker": 'new Worker(new URL("./worker.ts", import.meta.url));',
    "as a worker with a computed ending": "new Worker(new URL(`./worker.${extension}`, import.meta.url));",
    "as a program beside the file": 'join(import.meta.dirname, "worker.ts")',
    "as a program by its path from the root": 'run(join(root, "src/a/worker.ts"));',
    "inside a program's text":
      'const code = `import(${JSON.stringify(new URL("./worker.ts", import.meta.url).href)})`;',
  }))
    it(how, () => {
      const files = {
        "src/a/worker.ts": "",
        "src/a/main.ts": text,
        "src/a/a.test.ts": 'import "./main.ts";',
      };
      assert.equal(reached({ ...files, "src/b/b.test.ts": "" }, "src/a/worker.ts"), "src/a/a.test.ts");
    });
});

describe("a change of another file", () => {
  const files = {
    "src/store/sqlite/migrations/0001.sql": "",
    "src/store/sqlite/migrate.ts": 'migrationsIn(new URL("./migrations/", import.meta.url));',
    "src/store/sqlite.test.ts": 'import "./sqlite/migrate.ts";',
    "src/store/column.test.ts": "migrationsIn(new URL(`./${dialect}/migrations/`, import.meta.url));",
    "src/text/text.test.ts": "",
    "scripts/run.mjs": 'import { install } from "./install.mjs";',
    "scripts/install.mjs": "",
  };
  const ALL = "src/store/sqlite.test.ts src/store/column.test.ts src/text/text.test.ts";

  it("reaches what reads it, by its name or its folder", () => {
    const readers = "src/store/sqlite.test.ts src/store/column.test.ts";
    assert.equal(reached(files, "src/store/sqlite/migrations/0001.sql"), readers);
    assert.equal(reached(files, "src/store/sqlite/migrations/0002-new.sql"), readers);
  });

  it("reaches everything if it decides how tests run, or if nobody knows who reads it", () => {
    for (const path of [
      "package.json",
      "package-lock.json",
      "scripts/run.mjs",
      "scripts/install.mjs",
      "odd.bin",
    ])
      assert.equal(reached(files, path), ALL, path);
  });

  it("reaches nothing if only people or `npm run check` read it", () => {
    for (const path of ["README.md", "docs/agents.md", "tsconfig.json", ".oxlintrc.json"])
      assert.equal(reached(files, path), "", path);
  });

  it("says how many tests it reaches, and why so many", () => {
    const tests = ["a.test.ts", "b.test.ts"];
    const { reasons } = reachOf({ paths: tests, texts: new Map() }, ["README.md", "package.json"], tests);
    assert.deepEqual(reasons, [
      "package.json: all 2 test files, because it decides what is installed and how tests start",
      "README.md: 0 test files, because no code names it",
    ]);
  });
});

it("in this repository, what a daemon loads in threads and programs reaches the whole-daemon tests", () => {
  const repository = readRepository(ROOT);
  const tests = repository.paths.filter((path) => path.endsWith(".test.ts"));
  for (const path of [
    "src/domain/slot.ts",
    "src/store/sqlite/search/worker.ts",
    "src/import/thread/worker.ts",
    "src/drivers/process/guard-process.ts",
    "src/drivers/sim/agent.ts",
    "src/store/sqlite/migrations/0001-first.sql",
    "src/config/profiles/tester.md",
    "test/support/daemon-entry.ts",
  ])
    assert.ok(reachOf(repository, [path], tests).tests.includes("test/callbacks.test.ts"), path);
  const few = reachOf(repository, ["src/cli/commands/ls.ts"], tests).tests;
  assert.ok(few.length > 0 && few.length < tests.length / 4, `${few.length} of ${tests.length}`);
});

describe("the changes of a branch", () => {
  it("are what was committed since it left its base, changed, added, removed and renamed", (t) => {
    const root = mkdtempSync(join(tmpdir(), "kinfold-changed-"));
    t.after(() => rmSync(root, { recursive: true, force: true }));
    const git = (...args: string[]): void => {
      const by = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
      execFileSync("git", [...by, ...args], { cwd: root, stdio: "ignore" });
    };
    const write = (path: string, text: string): void => {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    };
    const commit = (): void => {
      git("add", "--all");
      git("commit", "--quiet", "--message", "One");
    };
    git("init", "--quiet", "--initial-branch=main");
    for (const path of ["same.ts", "committed.ts", "changed.ts", "removed.ts", "old-name.ts"])
      write(path, path);
    commit();
    git("switch", "--quiet", "--create", "branch");
    write("committed.ts", "new");
    commit();
    git("switch", "--quiet", "main");
    write("same.ts", "changed on main only");
    commit();
    git("switch", "--quiet", "branch");
    write("changed.ts", "new");
    write("folder/added.ts", "new");
    git("rm", "--quiet", "removed.ts");
    git("mv", "old-name.ts", "new-name.ts");
    assert.deepEqual(changedSince(root, "main"), [
      "changed.ts",
      "committed.ts",
      "folder/added.ts",
      "new-name.ts",
      "old-name.ts",
      "removed.ts",
    ]);
    assert.throws(() => changedSince(root, "nowhere"), /"nowhere" has no commit in common[^]*--base REV/);
  });
});

describe("the words of npm test", () => {
  const program = `import { keepReached, readReachWords } from ${JSON.stringify(new URL("./changed.mjs", import.meta.url).href)};
    const { reach, rest } = readReachWords(process.argv.slice(1));
    const files = keepReached(process.execPath, { root: ${JSON.stringify(ROOT)}, reach, files: ["src/cli/main.test.ts", "x.test.ts"] });
    console.log(JSON.stringify([rest, files]));`;
  const run = (...words: string[]): { status: number | null; stdout: string; stderr: string } =>
    spawnSync(process.execPath, ["--input-type=module", "-e", program, "--", ...words], { encoding: "utf8" });

  it("choose all tests, those of a change or those of one file", () => {
    const all = '["src/cli/main.test.ts","x.test.ts"]';
    assert.equal(run("store", "--test-only").stdout, `[["store","--test-only"],${all}]\n`);
    assert.equal(run("store", "--of", "package.json").stdout, `[["store"],${all}]\n`);
    assert.equal(run("--of=src/cli/main.test.ts").stdout, '[[],["src/cli/main.test.ts"]]\n');
    assert.match(run("--changed", "--base", "HEAD").stdout, /^\[\[\],\[/);
  });

  it("say which commit or file is wrong, and run nothing", () => {
    for (const [words, problem] of [
      [["--changed", "--base", "no-such-commit"], /"no-such-commit" has no commit in common/],
      [["--of", "src/nobody.ts"], /"src\/nobody\.ts" is not a file of this repository/],
    ] as const) {
      const { status, stdout, stderr } = run(...words);
      assert.deepEqual([status, stdout], [2, ""]);
      assert.match(stderr, problem);
    }
  });
});
