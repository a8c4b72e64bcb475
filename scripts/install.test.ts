import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, it } from "node:test";
import { fileURLToPath } from "node:url";

const made: string[] = [];
after(() => made.forEach((root) => rmSync(root, { recursive: true, force: true })));

/** Replaces npm: writes the files that `npm ci` would, and counts its calls. */
const NPM = `
const fs = require("node:fs"), path = require("node:path");
fs.appendFileSync("asked", process.argv.slice(2).join(" ") + "\\n");
const failures = fs.existsSync("broken") ? JSON.parse(fs.readFileSync("broken", "utf8")) : [];
if (failures.length > 0) {
  fs.writeFileSync("broken", JSON.stringify(failures.slice(1)));
  if (failures[0] === "killed") process.kill(process.pid, "SIGKILL");
  console.error("npm error code " + failures[0]);
  process.exit(7);
}
fs.rmSync("node_modules", { recursive: true, force: true });
setTimeout(() => {
  fs.mkdirSync("node_modules/.bin", { recursive: true });
  fs.symlinkSync(process.execPath, "node_modules/.bin/node");
  const { packages } = JSON.parse(fs.readFileSync("package-lock.json", "utf8"));
  for (const name of Object.keys(packages)) if (name && !packages[name].optional) fs.mkdirSync(name, { recursive: true });
  fs.writeFileSync("node_modules/.package-lock.json", JSON.stringify({ packages }));
}, 300);
`;

const RUN = `
import { install } from "./scripts/install.mjs";
console.log(await install(process.cwd(), (text) => console.error(text), { pausesMs: [1, 1, 1] }));
`;

function checkout(): string {
  const root = mkdtempSync(join(tmpdir(), "kinfold-install-"));
  made.push(root);
  mkdirSync(join(root, "scripts"));
  cpSync(fileURLToPath(new URL("install.mjs", import.meta.url)), join(root, "scripts/install.mjs"));
  writeFileSync(join(root, "npm-cli.js"), NPM);
  writeFileSync(join(root, "run.mjs"), RUN);
  lock(root, "1.0.0");
  return root;
}

function lock(root: string, version: string): void {
  const packages = {
    "": {},
    "node_modules/a": { version, integrity: "x" },
    "node_modules/b": { version, optional: true },
  };
  writeFileSync(join(root, "package-lock.json"), JSON.stringify({ packages }));
}

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function run(root: string, more: NodeJS.ProcessEnv = {}): Promise<Ended> {
  const npm = { npm_execpath: join(root, "npm-cli.js"), npm_node_execpath: process.execPath };
  const env = { ...process.env, ...npm, ...more };
  const child = spawn(process.execPath, ["run.mjs"], { cwd: root, env });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => void (out += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => void (err += chunk.toString()));
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, out: out.trim(), err })));
}

function asked(root: string): string[] {
  return existsSync(join(root, "asked")) ? readFileSync(join(root, "asked"), "utf8").trim().split("\n") : [];
}

it("of six processes that find nothing installed, one installs and all get the same Node", async () => {
  const root = checkout();
  const ended = await Promise.all(Array.from({ length: 6 }, () => run(root)));
  for (const { code, out, err } of ended) {
    assert.equal(code, 0, err);
    assert.equal(out, join(root, "node_modules/.bin/node"));
  }
  assert.deepEqual(asked(root), ["ci --ignore-scripts --no-audit --no-fund --loglevel=error"]);
  assert.ok(!existsSync(join(root, ".install.lock")));
});

it("a changed lockfile is installed again, an unchanged one is not", async () => {
  const root = checkout();
  await run(root);
  await run(root);
  assert.equal(asked(root).length, 1);
  lock(root, "2.0.0");
  await run(root);
  assert.equal(asked(root).length, 2);
});

it("an installation by another program from the same lockfile is used as it is", async () => {
  const root = checkout();
  await run(root);
  rmSync(join(root, "node_modules/.kinfold-install.json"));
  assert.equal((await run(root)).code, 0);
  assert.equal(asked(root).length, 1);
  rmSync(join(root, "node_modules/.kinfold-install.json"));
  rmSync(join(root, "node_modules/a"), { recursive: true });
  assert.equal((await run(root)).code, 0);
  assert.equal(asked(root).length, 2);
});

it("the lock of an installer that died is taken over", async () => {
  const root = checkout();
  const dead = await new Promise<number>((resolve) => {
    const child = spawn(process.execPath, ["-e", "0"]);
    child.on("exit", () => resolve(child.pid ?? 0));
  });
  mkdirSync(join(root, ".install.lock"));
  writeFileSync(join(root, ".install.lock/pid"), String(dead));
  const ended = await Promise.all([run(root), run(root), run(root)]);
  assert.deepEqual(
    ended.map(({ code }) => code),
    [0, 0, 0],
  );
  assert.equal(asked(root).length, 1);
});

/** Makes the next calls of npm fail, each with one of these codes. */
function breakNpm(root: string, codes: readonly string[]): void {
  writeFileSync(join(root, "broken"), JSON.stringify(codes));
}

it("a failed installation says how often it tried and what to do, and the next one starts from scratch", async () => {
  const root = checkout();
  breakNpm(
    root,
    Array.from({ length: 4 }, () => "ECONNRESET"),
  );
  const failed = await run(root);
  assert.notEqual(failed.code, 0);
  assert.match(failed.err, /npm ci failed 4 times \(exit 7\)[^]*npm config set registry/);
  assert.equal(asked(root).length, 4);
  assert.ok(!existsSync(join(root, ".install.lock")));
  assert.equal((await run(root)).code, 0);
  assert.equal(asked(root).length, 5);
});

for (const failures of [1, 2, 3]) {
  it(`a download that fails ${failures} of 4 times is repeated until it succeeds`, async () => {
    const root = checkout();
    breakNpm(
      root,
      Array.from({ length: failures }, () => "ECONNRESET"),
    );
    const { code, out, err } = await run(root);
    assert.equal(code, 0, err);
    assert.equal(out, join(root, "node_modules/.bin/node"));
    assert.equal(asked(root).length, failures + 1);
    assert.match(err, new RegExp(`Trying again in 1 s \\(try ${failures + 1} of 4\\)`));
  });
}

for (const [what, code] of [
  ["a lockfile that does not match", "EUSAGE"],
  ["a full disk", "ENOSPC"],
  ["an npm that somebody ended", "killed"],
] as const) {
  it(`${what} is not tried again`, async () => {
    const root = checkout();
    breakNpm(root, [code]);
    const failed = await run(root);
    assert.notEqual(failed.code, 0);
    assert.match(failed.err, /npm ci failed \((?:exit 7|SIGKILL)\)/);
    assert.equal(asked(root).length, 1);
  });
}

it("an npm that is not there is reported at once", async () => {
  const root = checkout();
  const { code, err } = await run(root, { PATH: root, npm_execpath: undefined });
  assert.notEqual(code, 0);
  assert.match(err, /npm was not found/);
  assert.doesNotMatch(err, /Trying again/);
});
