import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo } from "./support/family.ts";

const TALKER = fileURLToPath(new URL("./support/long-talker.ts", import.meta.url));
const SECRET = ["ghp", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"].join("_");
const MEGABYTE = 1024 * 1024;

test("a message of 24 MB is kept once: a megabyte in its entry, the rest in a bounded file without secrets", async () => {
  const command = [process.execPath, TALKER, "384x65536", SECRET];
  const home = new TestHome({
    yaml: JSON.stringify({ enforcement: "mode", agents: { talker: { command } } }),
  });
  try {
    const client = await home.start();
    const kid = JSON.stringify({ name: "kid", agent: "talker", prompt: "go" });
    const prompt = `sim> tool spawn_session ${kid}\nsim> say ok`;
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
    await allQuiet(client, root.id);
    const { sessions } = await client.children({ id: root.id });
    const child = sessions[0]!;
    assert.equal(child.outcome, "completed");
    const { entries } = await client.entries({ id: child.id });
    const said = entries.filter(({ author, kind }) => author === "agent" && kind === "text");
    assert.equal(said.length, 1);
    const { text, more } = said[0]!.body;
    assert.equal(text.length, 1_000_000);
    assert.equal(more?.path, path.join(home.home, "messages", child.id, path.basename(more?.path ?? "")));
    assert.equal(statSync(more!.path).mode & 0o777, 0o600);
    const rest = readFileSync(more!.path, "utf8");
    assert.deepEqual([rest.length, more!.chars], [16 * MEGABYTE, 16 * MEGABYTE]);
    assert.ok(more!.leftOutChars > 6 * MEGABYTE, "and says how much is in neither");
    assert.match(rest, /Look: \[redacted: [^\]]+\] was it\./);
    assert.equal(rest.includes(SECRET.slice(0, 20)), false);
    await isKeptOnce(home, text);

    const { text: result } = await client.inspect({ id: child.id, view: "result" });
    assert.ok(text.startsWith(result), "the result is read from the entry, in parts");
    assert.equal((await callbacksTo(client, root.id)).length, 1);
    const { text: transcript } = await client.transcript({ id: child.id });
    assert.ok(transcript.includes(more!.path), "the transcript says where the rest is");
  } finally {
    await home.close();
  }
});

/**
 * Checks that the store does not keep several copies of a text. It once kept five: in the entry, turn,
 * trigger, callback and message.
 */
async function isKeptOnce(home: TestHome, text: string): Promise<void> {
  const sizes = ["kinfold.db", "kinfold.db-wal"].map((name) => {
    const file = path.join(home.home, name);
    return existsSync(file) ? statSync(file).size : 0;
  });
  const most = 12 * text.length;
  assert.ok(sizes[0]! + sizes[1]! < most, `${sizes.join(" + ")} bytes, drafts in the log included`);
}
