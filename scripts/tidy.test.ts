import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { TABLE_END, TABLE_START, tidy, withTable } from "./tidy.ts";
import { layerTable } from "./tidy/layers.ts";
import { accepts, found, plant, refuses } from "./tidy/testing/plant.ts";

describe("size", () => {
  const lines = (count: number): string => "const a = 1;\n".repeat(count);
  const body = (count: number): string => "  a();\n".repeat(count);
  refuses({
    "a file of 401 lines": ["src/server/a.ts", lines(401), /401 lines; at most 400/],
    "a test file of 601 lines": ["src/server/a.test.ts", lines(601), /601 lines; at most 600/],
    "a function of 71 lines": [
      "src/server/a.ts",
      `export function f() {\n${body(69)}}\n`,
      /:1: a function of 71 lines; at most 70/,
    ],
    "an arrow function of 71 lines": [
      "src/server/a.ts",
      `\nexport const f = () => {\n${body(69)}};\n`,
      /:2: a function of 71 lines/,
    ],
    "a method of 71 lines": [
      "src/server/a.ts",
      `export class C {\n  m() {\n${body(69)}  }\n}\n`,
      /:2: a function of 71 lines/,
    ],
    "a test of 71 lines": [
      "src/server/a.test.ts",
      `it("x", () => {\n${body(68)}  assert(a);\n});\n`,
      /a function of 71 lines/,
    ],
  });
  refuses({
    "a function of four parameters": [
      "src/server/a.ts",
      "export function f(a: 1, b: 2, c: 3, d: 4) {\n  return [a, b, c, d];\n}\n",
      /:1: a function of 4 parameters; after 3 take one object/,
    ],
    "a method of four parameters": [
      "src/server/a.ts",
      "export class C {\n  m(a: 1, b: 2, c: 3, d = 4) {\n    return [a, b, c, d];\n  }\n}\n",
      /:2: a function of 4 parameters/,
    ],
    "a port whose method has four parameters": [
      "src/server/a.ts",
      "export interface P {\n  m(a: 1, b: 2, c: 3, d: 4): void;\n}\n",
      /:2: a function of 4 parameters/,
    ],
  });
  accepts({
    "three parameters, of which one is an object": [
      "src/server/a.ts",
      "export function f(a: 1, b: 2, { c, d }: { c: 3; d: 4 }) {\n  return [a, b, c, d];\n}\n",
    ],
    "a function of 70 lines under a long comment": [
      "src/server/a.ts",
      `/**\n${" *\n".repeat(20)} */\nexport function f() {\n${body(68)}}\n`,
    ],
    "a suite of many small tests": [
      "src/server/a.test.ts",
      `describe("x", () => {\n${'  it("y", () => assert(a));\n'.repeat(90)}});\n`,
    ],
  });
});

describe("syntax", () => {
  const silence = ["try {\n  a();\n} catch ", "\n"].join("{}");
  refuses({
    "an error that becomes a constant without a reason": [
      "src/server/a.ts",
      "/** Reads it. */\nexport async function f() {\n  return await g().catch(() => null);\n}\n",
      /:3: `\.catch` turns every error into a constant/,
    ],
    "an error that becomes a constant in a block": [
      "src/server/a.ts",
      'export const f = () =>\n  g("http://a").catch((): string[] => {\n    return [];\n  });\n',
      /turns every error into a constant/,
    ],
    "an error that becomes a constant of a file": [
      "src/server/a.ts",
      "export const f = () => g().catch(() => ({ a: NOTHING }));\n",
      /turns every error into a constant/,
    ],
    "a default export": ["src/server/a.ts", "const a = 1;\nexport default a;\n", /:2: a default export/],
    "a default function": ["src/server/a.ts", "export default function a() {}\n", /a default export/],
    any: ["src/server/a.ts", "export const a = 1 as any;\n", /`any`/],
    "an enum": ["src/server/a.ts", "enum A {}\nexport type B = A;\n", /an enum/],
    "a namespace": ["src/server/a.ts", "namespace A {}\n", /a namespace/],
    "an empty catch": ["src/server/a.ts", silence, /:3: an empty catch/],
    "a catch with nothing but a comment": [
      "src/server/a.ts",
      "try {\n  a();\n} catch {\n  // fine\n}\n",
      /an empty catch/,
    ],
    "an empty handler": ["src/server/a.ts", "a().catch(() => {});\n", /an empty catch/],
    "console in daemon code": ["src/engine/a.ts", 'console.log("x");\n', /console is for/],
    "console in a test": ["src/engine/a.test.ts", 'console.log("x");\n', /console is for/],
    "a focused test": ["src/engine/a.test.ts", 'it.only("x", () => {});\n', /silences every other/],
    "a focused suite by option": [
      "src/engine/a.test.ts",
      'describe("x", { only: true }, () => {});\n',
      /silences every other/,
    ],
    "a skipped test": ["src/engine/a.test.ts", 'it.skip("x", () => {});\n', /has no reason/],
    "a test skipped by option": [
      "src/engine/a.test.ts",
      'it("x", { skip: true }, () => assert(a));\n',
      /needs a reason/,
    ],
    "a test that skips itself": [
      "src/engine/a.test.ts",
      'it("x", (t) => assert(t.skip()));\n',
      /needs a reason/,
    ],
    "a property with another seed in every run": [
      "test/a.test.ts",
      "fc.assert(p);\n",
      /:1: a property runs with the listed seeds/,
    ],
    "a clock in the domain": ["src/domain/a.ts", "export const now = () => Date.now();\n", /no await, clock/],
    "today in the domain": ["src/domain/a.ts", "export const now = () => new Date();\n", /no await, clock/],
    "randomness in the domain": [
      "src/domain/a.ts",
      "export const dice = () => Math.random();\n",
      /no await, clock/,
    ],
    "waiting in the domain": ["src/domain/a.ts", "export async function f() {}\n", /no await, clock/],
    "a list of processes outside src/system": [
      "src/engine/a.ts",
      'import { readdirSync } from "node:fs";\nexport const pids = readdirSync("/proc");\n',
      /a\.ts:2: only src\/system reads \/proc/,
    ],
    "a file of a process outside src/system": [
      "src/history/a.ts",
      "export const path = (pid: number): string => `/proc/${pid}/stat`;\n",
      /only src\/system reads \/proc/,
    ],
    "a signal outside src/system": [
      "src/cli/a.ts",
      'export const end = (pid: number) => process.kill(pid, "SIGTERM");\n',
      /only src\/system reads \/proc or signals a process/,
    ],
  });
  refuses({
    "a test that draws without a seed": [
      "src/server/a.test.ts",
      'it("x", () => assert(Math.random() < 1));\n',
      /:1: a test that draws without a seed/,
    ],
    "a daemon of a test on the default port": [
      "src/cli/a.test.ts",
      'it("x", async () => assert(await cli.run(["up", "--foreground"])));\n',
      /:1: `kinfold up` without a port/,
    ],
    "a daemon of a story on the default port": [
      "test/a.test.ts",
      'it("x", async () => assert(await kinfold("up")));\n',
      /:1: `kinfold up` without a port/,
    ],
  });
  accepts({
    "a daemon on a port of its own": [
      "test/a.test.ts",
      'it("x", async () => assert((await cli.run(["up", "--port", "0"])) === (await say("what", "up"))));\n',
    ],
    "src/system, which reads processes": [
      "src/system/a.ts",
      'export const path = "/proc/self/stat";\nprocess.kill(1, 0);\n',
    ],
    "a program's argument": ["src/drivers/a.ts", 'export const words = ["--proc", "/proc"]; // in /proc\n'],
    "a word that only looks like any": ["src/server/a.ts", 'export const any = "any"; // any\n'],
    "a catch that answers": [
      "src/server/a.ts",
      "export function f() {\n  try {\n    return a();\n  } catch {\n    return null;\n  }\n}\n",
    ],
    "an error that becomes a constant for a reason": [
      "src/server/a.ts",
      "export async function f() {\n  // It may be gone.\n  return await g().catch(() => null);\n}\n",
    ],
    "an error that becomes a constant for a reason behind it": [
      "src/server/a.ts",
      "export const f = () => g().catch(() => false); // It may be gone.\n",
    ],
    "an error that is looked at": [
      "src/server/a.ts",
      "export const f = () => g().catch((error) => h(error));\n",
    ],
    "console in the CLI, scripts and bench": ["scripts/a.ts", 'console.log("x");\n'],
    "a skipped test with its reason": [
      "src/engine/a.test.ts",
      'it("x", { skip: "needs bubblewrap" }, (t) => assert(t.skip("why")));\n',
    ],
    "a date made from what is given": [
      "src/domain/a.ts",
      "export const at = (ms: number) => new Date(ms);\n",
    ],
  });
});

describe("tests", () => {
  const inTest = (text: string): [path: string, text: string] => [
    "src/server/a.test.ts",
    `import assert from "node:assert/strict";\n${text}`,
  ];
  const nothing = /:2: a test without an assertion/;
  const reason = /:2: a skipped test must print its reason/;
  const silence = /: a test that returns early is skipped in silence/;
  refuses({
    "a test that asserts nothing": [...inTest('it("x", async () => {\n  await a();\n});\n'), nothing],
    "a test whose helper asserts nothing": [
      ...inTest('it("x", () => b());\nfunction b() {\n  a();\n}\n'),
      nothing,
    ],
    "a test that is a function which asserts nothing": [
      ...inTest('test("x", b);\nfunction b() {}\n'),
      nothing,
    ],
    "a test made by a helper that asserts nothing": [
      ...inTest('story("x", () => a());\nfunction story(name, run) {\n  it(name, () => run());\n}\n'),
      nothing,
    ],
    "a skipped case whose reason is a truth": [
      ...inTest('it("x", { skip: process.platform === "win32" }, () => assert.ok(a()));\n'),
      reason,
    ],
    "a skipped suite whose reason is a truth with a name": [
      ...inTest('describe("x", { skip: none }, () => {});\nconst none = !b();\n'),
      reason,
    ],
    "a test that returns early": [
      ...inTest('it("x", () => {\n  if (b) return;\n  assert.ok(a());\n});\n'),
      silence,
    ],
    "a suite that leaves out what follows": [
      ...inTest(
        'describe("x", () => {\n  if (b) {\n    return;\n  }\n  it("y", () => assert.ok(a()));\n});\n',
      ),
      silence,
    ],
  });
  accepts({
    "a test that asserts in a helper": inTest('it("x", () => b());\nconst b = () => assert.ok(a());\n'),
    "a test that is a function which asserts": inTest(
      'test("x", b);\nfunction b() {\n  assert.ok(a());\n}\n',
    ),
    "a test made by a helper": inTest(
      'story("x", () => assert.ok(a()));\nfunction story(name, run) {\n  it(name, () => run());\n}\n',
    ),
    "a case that is skipped with a reason": inTest(
      'it("x", { skip: b() ? false : "why" }, (t) => {\n  if (c) return t.skip("why");\n  assert.ok(a());\n});\n',
    ),
    "a function inside a test that returns early": inTest(
      'it("x", () => {\n  on(() => {\n    if (b) return;\n    a();\n  });\n  assert.ok(a());\n});\n',
    ),
  });
  it("accepts a test whose assertion is in an imported helper", () => {
    const helper = 'import assert from "node:assert/strict";\nexport const check = () => assert.ok(a());\n';
    const use = 'import { check } from "../testing/check.ts";\nit("x", () => check());\n';
    const files = { "src/server/testing/check.ts": helper, "src/server/http/a.test.ts": use };
    assert.deepEqual(found(files), []);
  });
});

describe("folders", () => {
  const sources = (folder: string, count: number): Record<string, string> =>
    Object.fromEntries(
      Array.from({ length: count }, (_, n) => [`${folder}/a${n}.ts`, `export const a = ${n};\n`]),
    );
  const suite = 'export function rules() {\n  it("x", () => assert(a));\n}\n';

  it("refuses 26 source files in one folder, and says how many there are", () => {
    assert.deepEqual(found(sources("src/server", 26)), [
      "src/server:1: 26 source files in one folder; at most 25",
    ]);
  });
  it("accepts 25 source files beside tests, and any number of commands", () => {
    const tests = {
      "src/server/a.test.ts": 'it("x", () => assert(a));\n',
      "src/server/testing/b.ts": "a();\n",
    };
    assert.deepEqual(
      found({ ...sources("src/server", 25), ...tests, ...sources("src/cli/commands", 30) }),
      [],
    );
  });
  refuses({
    "a .spec.ts without a suite": [
      "src/server/a.spec.ts",
      "export function a() {}\n",
      /must export a conformance suite/,
    ],
    "a suite that no test runs": ["src/server/a.spec.ts", suite, /no test runs this conformance suite/],
    "fixtures beside the code": [
      "src/history/fixtures/a.jsonl",
      "{}\n",
      /fixtures belong in a testing\/ folder/,
    ],
  });
  it("refuses a file beside the code that only tests import", () => {
    const use = 'import { a } from "./sample.ts";\nit("x", () => assert(a));\n';
    const files = { "src/server/sample.ts": "export const a = 1;\n", "src/server/a.test.ts": use };
    assert.deepEqual(found(files), [
      "src/server/sample.ts:1: only tests import this; move it to a testing/ folder",
    ]);
    const program = 'export const path = new URL("../server/sample.ts", import.meta.url);\n';
    assert.deepEqual(found({ ...files, "src/server/start.ts": program }), []);
  });
  it("accepts a suite that a test runs, and fixtures in testing/", () => {
    const run = 'import { rules } from "./a.spec.ts";\nrules();\n';
    const files = { "src/server/a.spec.ts": suite, "src/server/a.test.ts": run };
    assert.deepEqual(found({ ...files, "src/history/testing/fixtures/A_1.jsonl": "{}\n" }), []);
  });
});

describe("names", () => {
  const words =
    "| Word | Meaning | Not |\n|---|---|---|\n| **Inbox** | x | queue*, mailbox |\n| **Scope** | x | agent_id |\n";
  const withWords = (path: string, text = "export const a = 1;\n"): string[] =>
    found({ "VOCABULARY.md": words, [path]: text });
  refuses({
    "a camelCase file": ["src/server/myFile.ts", "export const a = 1;\n", /"myFile\.ts" is not kebab-case/],
    "a snake_case file": ["src/store/sqlite/0001_first.sql", "select 1;\n", /not kebab-case/],
    "a drawer for everything": ["src/server/utils/a.ts", "export const a = 1;\n", /"utils" says nothing/],
    "a manager": ["src/engine/session-manager.ts", "export const a = 1;\n", /"manager" says nothing/],
    "a type that manages": [
      "src/engine/a.ts",
      "export class SessionManager {}\n",
      /type SessionManager: "manager" says nothing/,
    ],
    "a second version": ["src/engine/a.ts", "export interface TurnV2 {}\n", /type TurnV2: "v2"/],
  });

  it("a word of the column Not is refused for files, tables and exports, and the right one is named", () => {
    assert.match(
      withWords("src/store/mailbox.ts").join(),
      /"mailbox" is not our word; VOCABULARY\.md says inbox/,
    );
    assert.match(
      withWords("src/store/a.sql", "select 1;\ncreate table mailboxes (id int);\n").join(),
      /a\.sql:2: table mailboxes/,
    );
    assert.match(withWords("src/store/a.ts", "export type MailboxRow = 1;\n").join(), /type MailboxRow/);
    assert.match(
      withWords("src/store/a.ts", "export function toMailbox() {}\n").join(),
      /function toMailbox/,
    );
    assert.match(withWords("src/store/a.ts", "export const MAILBOX_MAX = 1;\n").join(), /value MAILBOX_MAX/);
    assert.match(
      withWords("src/store/a.ts", "export type AgentId = 1;\n").join(),
      /VOCABULARY\.md says scope/,
    );
  });

  it("a marked word, a private type, what an agent wrote and prose are left alone", () => {
    assert.deepEqual(withWords("src/store/queue.ts"), []);
    assert.deepEqual(withWords("src/history/codex/testing/fixtures/2026/Mailbox_T1.jsonl", "{}\n"), []);
    assert.deepEqual(
      withWords(
        "src/store/a.ts",
        "type Mailbox = 1;\nconst mailbox: Mailbox = 1;\nexport const a = mailbox;\n",
      ),
      [],
    );
    assert.deepEqual(withWords("docs/mailbox.md", "A mailbox.\n"), []);
  });
});

describe("text", () => {
  const pieces = (...parts: string[]): string => parts.join("");
  refuses({
    "unfinished work": ["src/server/a.ts", pieces("// TO", "DO: later\n"), /finish the work/],
    "a promise to come back": ["docs/a.md", pieces("Good enough for", " now.\n"), /meant to stay/],
    "a path of a person's machine": [
      "docs/a.md",
      pieces("See `/ho", "me/alex/x`.\n"),
      /a path that exists on one machine only/,
    ],
    "a path of a build machine": [
      "docs/a.md",
      pieces("See /wo", "rk/x.\n"),
      /a path that exists on one machine only/,
    ],
    "a registry's address": [
      ".npmrc",
      pieces("registry=https://regis", "try.example.test/\n"),
      /a registry's address/,
    ],
    "a credential": [".npmrc", pieces("//x/:_auth", "Token=y\n"), /a credential's name/],
  });
  accepts({
    "paths that only look like it": [
      "docs/a.md",
      pieces("src/ho", "me/x, $PWD/wo", "rk/x, ~/wo", "rk/y, https://a.test/ho", "me/x\n"),
    ],
  });
});

describe("the import table people read", () => {
  it("is refused if it differs from the enforced one, and withTable fixes it", () => {
    const stale = `# A\n\n${TABLE_START}\n\n| old |\n\n${TABLE_END}\n\nrest\n`;
    assert.match(found({ "ARCHITECTURE.md": stale }).join(), /run `npm run docs`/);
    assert.match(found({ "ARCHITECTURE.md": "# A\n" }).join(), /run `npm run docs`/);
    const fresh = withTable(stale);
    assert.ok(fresh.includes(layerTable()) && fresh.endsWith("rest\n"));
    assert.equal(withTable(fresh), fresh);
    assert.deepEqual(found({ "ARCHITECTURE.md": fresh }), []);
  });
});

it("what git ignores and what is installed is not looked at", () => {
  const bad = "export default 1;\n";
  const root = plant({
    ".gitignore": "out/\n",
    "out/a.ts": bad,
    "node_modules/x/a.ts": bad,
    "src/server/a.ts": bad,
  });
  const paths = (): string[] => tidy(root).map(({ path }) => path);
  rmSync(join(root, "out"), { recursive: true });
  assert.deepEqual(paths(), ["src/server/a.ts"]);
  assert.equal(spawnSync("git", ["init", "-q"], { cwd: root }).status, 0);
  writeFileSync(join(root, ".gitignore"), "out/\nnode_modules/\n");
  mkdirSync(join(root, "out"));
  writeFileSync(join(root, "out/a.ts"), bad);
  assert.deepEqual(paths(), ["src/server/a.ts"]);
});

it("a file that is not text is not read as text", () => {
  const root = plant({});
  writeFileSync(join(root, "a.png"), Buffer.from([0x89, 0, 1, 2]));
  assert.deepEqual(tidy(root), []);
  assert.equal(readFileSync(join(root, "a.png")).length, 4);
});

describe("a write of the engine carries the fence of a process", () => {
  const path = "src/engine/a.ts";
  const body = (call: string): string =>
    `export async function a(deps: D, work: W): Promise<void> {\n  ${call}\n}\n`;
  refuses({
    "a write without one": [
      path,
      body("await deps.store.write(id, work);"),
      /a\.ts:2: a write of the engine must name/,
    ],
    "a write without one of a store by name": [
      path,
      body("await store.write(id, work);"),
      /must name its process/,
    ],
    "another comment": [path, body("// It writes.\n  await store.write(id, work);"), /must name its process/],
  });
  accepts({
    "a write with one": [path, body("await deps.store.write(id, fence, work);")],
    "one that says why it has none": [
      path,
      body("// No fence: for no process.\n  await store.write(id, work);"),
    ],
    "an operation's write": ["src/operations/a.ts", body("await deps.store.write(id, work);")],
  });
});
