import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { Refusal } from "../src/contract/index.ts";
import { TestHome } from "./support/daemon.ts";

async function refusalOf(asked: Promise<unknown>): Promise<Refusal> {
  const error: unknown = await asked.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Refusal, String(error));
  return error;
}

test("of a bad profile file, a real daemon refuses only what names it, and says file and line", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const folder = path.join(home.home, "profiles");
    mkdirSync(folder, { recursive: true });
    const file = path.join(folder, "reviewer.md");
    writeFileSync(file, "---\nname: reviewer\ndescription: d\ncolour: red\n---\nDo it.\n");
    const root = await client.create({ name: "root", prompt: "sim> say done" });
    const child = await client.spawn({ id: root.session.id, profile: "tester", prompt: "sim> say done" });
    assert.equal(child.effective.profile, "tester");
    for (const asked of [
      client.create({ profile: "reviewer", prompt: "x" }),
      client.spawn({ id: root.session.id, profile: "reviewer", prompt: "x" }),
    ]) {
      const refusal = await refusalOf(asked);
      assert.equal(refusal.code, "bad_profile");
      assert.ok(refusal.message.includes(`${file}:4: "colour" is not a key here; did you mean "color"?`));
      assert.match(
        refusal.message,
        /Nothing was done\. The user can correct or remove that file, or name another/,
      );
    }
    const { problems, profiles } = await client.models({});
    assert.deepEqual(
      problems.map((each) => [each.names, each.file, each.line]),
      [[["reviewer"], file, 4]],
    );
    assert.ok(profiles.some(({ name }) => name === "tester"));
    rmSync(file);
    const after = await client.create({ profile: "reviewer", prompt: "sim> say done" });
    assert.equal(after.effective.profile, "reviewer");
  } finally {
    await home.close();
  }
});
