import assert from "node:assert/strict";
import test from "node:test";
import { type Client, TestHome } from "./support/daemon.ts";
import { allQuiet, childNamed, toolReplies } from "./support/family.ts";
import { script, spawnStep, tool } from "./support/script.ts";

async function inherited(client: Client, id: string): Promise<string> {
  return (await client.inspect({ id, view: "inherited" })).text;
}

test("a child spawned in the middle of its parent's turn has the parent's newest words, and its agent gets them", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    // The checkpoint keeps the prompt itself out of the brief, so that only what was said can be recalled.
    const prompt = script(
      tool("checkpoint", { summary: "Half of it is done.", constraints: { push: "Never push." } }),
      "say the first words",
      "think a private thought",
      "run echo seen by a tool",
      "say the very newest words",
      spawnStep({ name: "kid", prompt: script("recall agent: the very newest words", "recall private") }),
    );
    const { session: root } = await client.create({ name: "root", cwd: home.work, title: "Release", prompt });
    await allQuiet(client, root.id);
    const child = await childNamed(client, root.id, "kid");
    const text = await inherited(client, child.id);
    const fence = `id="${child.shortId}"`;
    assert.equal(
      text.replace(
        /\n {2}agent: \{"checkpoint"[^]*?later self\.|\n {2}agent: \{"checkpoint"[^]*?inherit it\./,
        "",
      ),
      [
        "## Inherited from Parent Session",
        "",
        "Release",
        "Checkpoint:",
        "  Half of it is done.",
        "Recent context:",
        "  agent: the first words",
        "  agent calls shell: echo seen by a tool",
        "  shell returned (exit 0):",
        `    <tool-output ${fence}>`,
        "    seen by a tool",
        `    </tool-output ${fence}>`,
        "  agent: the very newest words",
        "  agent calls spawn_session (no result yet)",
        "Active constraints: push: Never push.",
      ].join("\n"),
    );
    const { entries } = await client.entries({ id: child.id, limit: 100 });
    assert.equal(entries[0]?.kind, "inherited");
    assert.equal(entries[0]?.body.text, text);
    const said = entries.filter((entry) => entry.author === "agent").map((entry) => entry.body.text);
    assert.deepEqual(said, ["sim: recalls agent: the very newest words", "sim: does not recall private"]);
    const [reply] = await toolReplies(client, root.id, "spawn_session");
    assert.match(reply!.text, /; inherits a 0\.\d KB brief[;.]/);
  } finally {
    await home.close();
  }
});

test("however fast an agent spawns after it spoke, what it said comes first", async () => {
  const env = { KINFOLD_LIMITS_CHILDREN_MAX: "100", KINFOLD_LIMITS_SPAWNS_PER_MINUTE_MAX: "1000" };
  const home = new TestHome({ env });
  try {
    const client = await home.start();
    const numbers = Array.from({ length: 24 }, (_, n) => n);
    const steps = numbers.flatMap((n) => [
      `say word ${n}`,
      spawnStep({ name: `kid-${n}`, prompt: "sim> say hello" }),
    ]);
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt: script(...steps) });
    await allQuiet(client, root.id);
    for (const n of numbers) {
      const child = await childNamed(client, root.id, `kid-${n}`);
      const text = await inherited(client, child.id);
      assert.ok(text.endsWith(`\n  agent: word ${n}\n  agent calls spawn_session (no result yet)`), text);
    }
  } finally {
    await home.close();
  }
});
