import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { TestHome } from "./support/daemon.ts";

const refusalOf = (asked: Promise<unknown>): Promise<{ code: string; message: string }> =>
  asked.then(
    () => ({ code: "", message: "" }),
    (error: unknown) => error as { code: string; message: string },
  );

/** A project with a `kinfold.yaml` at its git top level, and a folder below it. */
function project(home: TestHome, yaml: string): { top: string; below: string; file: string } {
  const top = path.join(home.work, "project");
  const below = path.join(top, "packages", "a");
  mkdirSync(below, { recursive: true });
  mkdirSync(path.join(top, ".git"));
  const file = path.join(top, "kinfold.yaml");
  writeFileSync(file, yaml);
  return { top, below, file };
}

describe("a project's kinfold.yaml, in a real daemon", { concurrency: 2 }, () => {
  test("lowers the permission of roots and children in its folders, says so, and holds them to it", async () => {
    const home = new TestHome();
    try {
      const { top, below, file } = project(home, "permission: read-only\n");
      const client = await home.start();
      const prompt = "sim> write a.txt x";
      const root = await client.create({ name: "root", cwd: below, prompt });
      assert.equal(root.effective.permission, "read-only");
      assert.equal(root.effective.loweredBy?.["permission"], `${file}:1`);
      await client.wait({ id: "root", timeoutMs: 60_000 });
      assert.equal(existsSync(path.join(below, "a.txt")), false);
      const wide = await refusalOf(client.create({ cwd: top, permission: "workspace", prompt }));
      assert.equal(wide.code, "permission_too_wide");
      assert.match(wide.message, /what this project allows, which is "read-only" \(.*kinfold\.yaml:1\)/);
      const outside = await client.create({ name: "outside", cwd: home.work, permission: "full", prompt });
      assert.equal(outside.effective.loweredBy, undefined);
      const child = await client.spawn({ id: outside.session.id, cwd: top, prompt });
      assert.equal(child.effective.permission, "read-only");
      assert.equal(child.effective.loweredBy?.["permission"], `${file}:1`);
      const beyond = await refusalOf(
        client.spawn({ id: outside.session.id, cwd: top, permission: "ask", prompt }),
      );
      assert.equal(beyond.code, "permission_too_wide");
    } finally {
      await home.close();
    }
  });

  test("lowers limits for the family that works there, and raises none", async () => {
    const home = new TestHome({ yaml: "limits:\n  sessionsMax: 10\n" });
    try {
      const yaml = "limits:\n  depthMax: 1\n  childrenMax: 1\n  promptBytesMax: 100\n  sessionsMax: 1000\n";
      const { top } = project(home, yaml);
      const client = await home.start();
      const { session, effective } = await client.create({ name: "root", cwd: top, prompt: "sim> hang" });
      assert.equal(effective.counts?.["depthMax"], 1);
      const long = "x".repeat(101);
      assert.equal((await refusalOf(client.create({ cwd: top, prompt: long }))).code, "prompt_too_large");
      assert.equal((await refusalOf(client.prompt({ id: "root", prompt: long }))).code, "prompt_too_large");
      const child = await client.spawn({ id: session.id, name: "child", prompt: "sim> hang" });
      assert.equal(child.effective.counts?.["depthMax"], 1, "a child keeps what was lowered above it");
      const deep = await refusalOf(client.spawn({ id: child.session.id, cwd: home.work, prompt: "x" }));
      assert.equal(deep.code, "limit_depth");
      assert.equal((await refusalOf(client.spawn({ id: session.id, prompt: "x" }))).code, "limit_children");
      await client.cancel({ id: session.id });
    } finally {
      await home.close();
    }
  });

  test("that cannot be read starts nothing, and holds nobody up", async () => {
    const home = new TestHome();
    try {
      const { top, file } = project(home, "permission: readonly\n");
      const client = await home.start();
      const ask = () => refusalOf(client.create({ cwd: top, prompt: "hello" }));
      const bad = await ask();
      assert.equal(bad.code, "bad_project_file");
      assert.match(bad.message, /kinfold\.yaml:1: permission is not valid/);
      const put: [string, () => void][] = [
        ["is a link", () => symlinkSync("/dev/zero", file)],
        ["is not a plain file", () => execFileSync("mkfifo", [file])],
        ["is larger than 64 KB", () => writeFileSync(file, "#".repeat(70_000))],
      ];
      for (const [why, make] of put) {
        rmSync(file);
        make();
        assert.match((await ask()).message, new RegExp(why));
      }
    } finally {
      await home.close();
    }
  });

  test("sets no agent and no callback: that narrows nothing", async () => {
    const home = new TestHome();
    try {
      const { top } = project(home, "agent: nobody\ncallback:\n  template: planted\n");
      const client = await home.start();
      const { session } = await client.create({ cwd: top, prompt: "hello" });
      assert.equal(session.agent, "sim");
      assert.equal(session.callback.template, null);
    } finally {
      await home.close();
    }
  });
});
