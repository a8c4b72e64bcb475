import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import type { ProfileProblem } from "../contract/index.ts";
import { loadProfiles, trustProject } from "./profile.ts";

interface Places {
  readonly home: string;
  readonly project: string;
  /** The folder of the home's profiles, and that of the project's. */
  readonly own: string;
  readonly agents: string;
}

function places(t: TestContext): Places {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "kinfold-profiles-")));
  t.after(() => rmSync(top, { recursive: true, force: true }));
  const [home, project] = [join(top, "home"), join(top, "project")];
  const [own, agents] = [join(home, "profiles"), join(project, ".kinfold", "agents")];
  for (const folder of [own, agents]) mkdirSync(folder, { recursive: true });
  return { home, project, own, agents };
}

const profile = (name: string, more = ""): string =>
  `---\nname: ${name}\ndescription: d\n${more}---\nDo it.\n`;

/** Writes what a bad file may be at this path. The problem it must give: the line, and words of its text. */
const BAD: Record<string, readonly [make: (file: string) => void, line: number | null, words: RegExp]> = {
  "an unknown key": [
    (file) => writeFileSync(file, profile("reviewer", "colour: red\n")),
    4,
    /^"colour" is not a key here; did you mean "color"\? Allowed: name, description, agent, /,
  ],
  "an unknown key in a group": [
    (file) => writeFileSync(file, profile("reviewer", "limits:\n  usd: 2\n  token: 5\n")),
    6,
    /^"limits\.token" is not a key here; did you mean "tokens"\? Allowed: usd, tokens, turns, minutes$/,
  ],
  "a value of another type": [
    (file) => writeFileSync(file, profile("reviewer", "model: 5\n")),
    4,
    /^"model" must be of the type string$/,
  ],
  "a value that is none of those allowed": [
    (file) => writeFileSync(file, profile("reviewer", "tools: Read\npermission: everything\n")),
    5,
    /^"permission" must be one of: read-only, ask, workspace, full$/,
  ],
  "an empty value": [
    (file) => writeFileSync(file, profile("reviewer", "tools:\n")),
    4,
    /^"tools" is empty; give it a value/,
  ],
  "a missing key": [
    (file) => writeFileSync(file, "---\nname: reviewer\n---\nDo it.\n"),
    1,
    /^"description" is missing/,
  ],
  "two errors": [
    (file) => writeFileSync(file, profile("reviewer", "model: 5\nagent: 6\n")),
    null,
    /\(and 1 more\)$/,
  ],
  "YAML that cannot be parsed": [
    (file) => writeFileSync(file, profile("reviewer", "tools: [Read\nmodel: x\n")),
    5,
    /^it is not valid YAML: /,
  ],
  "a key that is given twice": [
    (file) => writeFileSync(file, profile("reviewer", "name: other\n")),
    4,
    /^it is not valid YAML: Map keys must be unique/,
  ],
  "front matter that is a list": [
    (file) => writeFileSync(file, "---\n- reviewer\n---\n"),
    2,
    /^it must be `key: value` lines$/,
  ],
  "no front matter": [(file) => writeFileSync(file, "Do it."), 1, /^it must begin with front matter/],
  "an empty file": [(file) => writeFileSync(file, ""), 1, /^it must begin with front matter/],
  "bytes that are not UTF-8": [
    (file) => writeFileSync(file, Buffer.from(profile("reviewer", "model: \xe9\n"), "latin1")),
    null,
    /^it is not UTF-8 text; a profile is a plain text file of at most 64 KB$/,
  ],
  "a file that is too large": [
    (file) => {
      writeFileSync(file, profile("reviewer"));
      truncateSync(file, 8 * 1024 ** 3);
    },
    null,
    /^it is larger than 64 KB/,
  ],
  "a folder": [(file) => mkdirSync(file), null, /^it is not a plain file/],
  "a FIFO": [(file) => execFileSync("mkfifo", [file]), null, /^it is not a plain file/],
  "a link to itself": [(file) => symlinkSync(file, file), null, /^it is a link/],
  "a link to a device": [(file) => symlinkSync("/dev/zero", file), null, /^it is (a link|not a plain file)/],
};

function onlyProblem(problems: readonly ProfileProblem[]): ProfileProblem {
  const [problem, ...others] = problems;
  assert.ok(problem !== undefined && others.length === 0, JSON.stringify(problems));
  return problem;
}

describe("of a profile file that cannot be used, only its own name is refused, with file and line", () => {
  for (const [what, [make, line, words]] of Object.entries(BAD)) {
    test(`in the home: ${what}`, async (t) => {
      const { home, own } = places(t);
      const file = join(own, "reviewer.md");
      make(file);
      writeFileSync(join(own, "mine.md"), profile("mine"));
      const { profiles, problems } = await loadProfiles({ home, project: null });
      const problem = onlyProblem(problems);
      assert.deepEqual([problem.names, problem.file], [["reviewer"], file]);
      if (line !== null) assert.equal(problem.line, line, problem.text);
      assert.match(problem.text, words);
      const names = new Set(profiles.map(({ name }) => name));
      assert.ok(!names.has("reviewer"), "the built-in profile of the name is not used instead");
      assert.ok(names.has("mine") && names.has("tester"));
    });

    test(`in a trusted project: ${what}`, async (t) => {
      const { home, project, agents } = places(t);
      const file = join(agents, "reviewer.md");
      writeFileSync(file, profile("reviewer"));
      writeFileSync(join(agents, "mine.md"), profile("mine"));
      await trustProject(home, project);
      rmSync(file);
      make(file);
      const { profiles, problems, untrusted } = await loadProfiles({ home, project });
      const names = new Set(profiles.map(({ name }) => name));
      assert.ok(names.has("mine"));
      // A text that nobody trusted is not read, whatever is wrong with it.
      if (untrusted.length > 0) return assert.deepEqual(untrusted, [{ name: "reviewer", file }]);
      assert.deepEqual(onlyProblem(problems).names, ["reviewer"]);
      assert.match(onlyProblem(problems).text, words);
      assert.ok(!names.has("reviewer"));
    });
  }
});

test("a file that may not be read is refused by its own name", async (t) => {
  if (process.getuid?.() === 0) return t.skip("root may read every file");
  const { home, own } = places(t);
  writeFileSync(join(own, "reviewer.md"), profile("reviewer"), { mode: 0o000 });
  const { profiles, problems } = await loadProfiles({ home, project: null });
  assert.deepEqual(onlyProblem(problems).names, ["reviewer"]);
  assert.match(onlyProblem(problems).text, /^it may not be read by this user/);
  assert.ok(profiles.every(({ name }) => name !== "reviewer"));
});

test("a folder that may not be read hides which profiles it replaces, so none from below it is used", async (t) => {
  if (process.getuid?.() === 0) return t.skip("root may read every folder");
  const { home, own } = places(t);
  chmodSync(own, 0o000);
  const { profiles, problems } = await loadProfiles({ home, project: null }).finally(() =>
    chmodSync(own, 0o700),
  );
  assert.deepEqual(profiles, []);
  assert.ok(onlyProblem(problems).names.includes("default"));
});

test("a trusted text that a newer version cannot use is refused by its own name", async (t) => {
  const { home, project, agents } = places(t);
  const file = join(agents, "strict.md");
  writeFileSync(file, profile("reviewer"));
  await trustProject(home, project);
  const bad = profile("reviewer", "colour: red\n");
  const [key] = Object.keys(
    JSON.parse(execFileSync("cat", [join(home, "trusted.json")], { encoding: "utf8" })),
  );
  const hash = execFileSync("sha256sum", { input: bad, encoding: "utf8" }).slice(0, 64);
  writeFileSync(file, bad);
  writeFileSync(join(home, "trusted.json"), JSON.stringify({ [key!]: hash }));
  const { profiles, problems, untrusted } = await loadProfiles({ home, project });
  assert.deepEqual(untrusted, []);
  const problem = onlyProblem(problems);
  assert.deepEqual([problem.names, problem.file, problem.line], [["reviewer"], file, 4]);
  assert.ok(profiles.every(({ name }) => name !== "reviewer"));
});

test("a file that cannot be parsed is refused by the name it gives and by its file's name", async (t) => {
  const { home, own } = places(t);
  writeFileSync(join(own, "tester.md"), profile("reviewer", "tools: [\n"));
  const { problems } = await loadProfiles({ home, project: null });
  assert.deepEqual(onlyProblem(problems).names, ["reviewer", "tester"]);
});

test("a bad file of the home does not refuse what a trusted project's good file replaces", async (t) => {
  const { home, project, own, agents } = places(t);
  writeFileSync(join(own, "reviewer.md"), profile("reviewer", "colour: red\n"));
  writeFileSync(join(agents, "reviewer.md"), profile("reviewer"));
  await trustProject(home, project);
  const { profiles, problems } = await loadProfiles({ home, project });
  assert.deepEqual(onlyProblem(problems).names, []);
  assert.equal(profiles.find(({ name }) => name === "reviewer")?.from, join(agents, "reviewer.md"));
});

test("a link to a plain file of the home is read", async (t) => {
  const { home, own, project } = places(t);
  writeFileSync(join(project, "elsewhere"), profile("mine"));
  symlinkSync(join(project, "elsewhere"), join(own, "mine.md"));
  const { profiles, problems } = await loadProfiles({ home, project: null });
  assert.deepEqual(problems, []);
  assert.ok(profiles.some(({ name }) => name === "mine"));
});

test("a list of trusted files that cannot be parsed refuses the project's profiles, not the others", async (t) => {
  const { home, project, agents } = places(t);
  writeFileSync(join(agents, "reviewer.md"), profile("reviewer"));
  writeFileSync(join(home, "trusted.json"), "{");
  const { profiles, problems } = await loadProfiles({ home, project });
  assert.deepEqual(onlyProblem(problems).names, ["reviewer"]);
  assert.match(onlyProblem(problems).text, /trusted\.json cannot be read/);
  assert.ok(profiles.some(({ name }) => name === "tester"));
});

test("trusting a project passes over a file that cannot be used", async (t) => {
  const { home, project, agents } = places(t);
  writeFileSync(join(agents, "bad.md"), profile("bad", "colour: red\n"));
  writeFileSync(join(agents, "good.md"), profile("good"));
  assert.deepEqual(await trustProject(home, project), [join(agents, "good.md")]);
  const { untrusted } = await loadProfiles({ home, project });
  assert.deepEqual(untrusted, [{ name: "bad", file: join(agents, "bad.md") }]);
});
