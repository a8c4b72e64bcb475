import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { isAbsolute, join } from "node:path";
import { after, it } from "node:test";
import {
  kinfoldHome,
  pathsIn,
  prepareHome,
  readDaemonFile,
  removeDaemonFile,
  writeDaemonFile,
} from "./index.ts";

const root = mkdtempSync(join(tmpdir(), "kinfold-paths-"));
after(() => rmSync(root, { recursive: true, force: true }));

it("the home is KINFOLD_HOME made absolute, else .kinfold in the person's home", () => {
  assert.equal(kinfoldHome({}), join(homedir(), ".kinfold"));
  assert.equal(kinfoldHome({ KINFOLD_HOME: " " }), join(homedir(), ".kinfold"));
  assert.ok(isAbsolute(kinfoldHome({ KINFOLD_HOME: "here" })));
});

it("everything Kinfold owns is inside its home", () => {
  const { home, ...rest } = pathsIn(root);
  for (const path of Object.values(rest)) assert.ok(path.startsWith(join(home, "/")));
});

it("a prepared home is its owner's alone, and preparing it twice is no error", () => {
  const paths = pathsIn(join(root, "new"));
  prepareHome(paths);
  prepareHome(paths);
  assert.equal(statSync(paths.home).mode & 0o777, 0o700);
  assert.ok(statSync(paths.rollouts).isDirectory());
});

it("the daemon's file is read back whole, removed by its own daemon only, and nonsense counts as none", () => {
  const path = join(root, "daemon.json");
  assert.equal(readDaemonFile(path), null);
  const daemon = { pid: 1, url: "http://127.0.0.1:1", startedAt: 2, boot: "b", processStart: "c" };
  writeDaemonFile(path, daemon);
  assert.deepEqual(readDaemonFile(path), daemon);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.ok(readdirSync(root).every((name) => !name.endsWith(".tmp")));
  removeDaemonFile(path, "another");
  assert.deepEqual(readDaemonFile(path), daemon);
  removeDaemonFile(path, "b");
  assert.equal(readDaemonFile(path), null);
  for (const text of ["", "{", "null", "[]", '{"pid":"1"}']) {
    writeFileSync(path, text);
    assert.equal(readDaemonFile(path), null);
  }
});
