import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, test } from "node:test";
import { eventually, TestHome } from "./support/daemon.ts";

const refusalOf = (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => "",
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );

describe("folders of sessions, in a real daemon", { concurrency: 2 }, () => {
  test("a child whose folder was swapped for a link between turns starts no process there", async () => {
    const home = new TestHome({ env: { KINFOLD_IDLE_MS: "0" } });
    try {
      const client = await home.start();
      const folder = path.join(home.work, "child");
      const secret = path.join(home.work, "secret");
      for (const each of [folder, secret]) mkdirSync(each);
      const parent = await client.create({ name: "parent", cwd: home.work, prompt: "hello" });
      await client.spawn({
        id: parent.session.id,
        name: "child",
        cwd: folder,
        prompt: "sim> write a.txt one",
      });
      assert.equal((await client.wait({ id: "child", timeoutMs: 60_000 })).outcome, "completed");
      assert.equal(readFileSync(path.join(folder, "a.txt"), "utf8"), "one\n");
      renameSync(folder, `${folder}-away`);
      symlinkSync(secret, folder);
      await client.prompt({ id: "child", prompt: "sim> write b.txt two" });
      const end = await client.wait({ id: "child", timeoutMs: 60_000 });
      assert.equal(end.outcome, "failed");
      assert.match(end.error ?? "", /was replaced by a link to .*secret/);
      assert.equal(existsSync(path.join(secret, "b.txt")), false);
    } finally {
      await home.close();
    }
  });

  test("no session works in the daemon's home, whatever the folder there is called", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const link = path.join(home.work, "link");
      symlinkSync(home.home, link);
      for (const name of ["..evil", "...", "evil"]) {
        mkdirSync(path.join(home.home, name));
        for (const cwd of [path.join(home.home, name), path.join(link, name)])
          assert.equal(await refusalOf(client.create({ cwd, prompt: "hello" })), "cwd_not_allowed", cwd);
      }
    } finally {
      await home.close();
    }
  });

  test("sim writes through no link that leads out of its folder unasked", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const folder = path.join(home.work, "inside");
      const outside = path.join(home.work, "outside");
      for (const each of [folder, outside]) mkdirSync(each);
      writeFileSync(path.join(outside, "there.txt"), "mine\n");
      symlinkSync(path.join(outside, "there.txt"), path.join(folder, "file"));
      symlinkSync(path.join(outside, "new.txt"), path.join(folder, "dangling"));
      symlinkSync(outside, path.join(folder, "dir"));
      const writes = ["write file x", "write dangling x", "write dir/y x", "write own.txt x"];
      await client.create({
        name: "writer",
        cwd: folder,
        permission: "workspace",
        prompt: writes.map((each) => `sim> ${each}`).join("\n"),
      });
      for (let asked = 0; asked < 3; asked += 1) {
        const id = await eventually("a permission is asked for", async () => {
          const { triggers } = await client.listTriggers({ for: "person" });
          return triggers[0]?.id;
        });
        await client.respond({ id, action: "deny" });
      }
      const end = await client.wait({ id: "writer", timeoutMs: 60_000 });
      assert.equal(end.outcome, "completed");
      assert.equal(readFileSync(path.join(outside, "there.txt"), "utf8"), "mine\n");
      for (const name of ["new.txt", "y"]) assert.equal(existsSync(path.join(outside, name)), false, name);
      assert.equal(readFileSync(path.join(folder, "own.txt"), "utf8"), "x\n");
    } finally {
      await home.close();
    }
  });
});
