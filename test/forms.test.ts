import assert from "node:assert/strict";
import { test } from "node:test";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet } from "./support/family.ts";

async function asked(client: Client, id: string) {
  return eventually("it asks", async () => {
    const { triggers } = await client.triggers({ id });
    return triggers.find(({ status }) => status === "open");
  });
}

async function said(client: Client, id: string) {
  const { entries } = await client.entries({ id });
  const shown = entries.filter(({ kind }) => kind === "text" || kind === "trigger");
  return shown.map(({ author, body }) => [author, body.text]);
}

test("questions and answers of a vendor's own form are in transcript, export and search, with their true authors", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const prompt = "sim> say I need to know.\nsim> ask Which marmalade? | plum | quince\nsim> say Done.";
    const { session } = await client.create({ name: "root", cwd: home.work, prompt });
    const question = await asked(client, session.id);
    const open = [
      ["agent", "I need to know."],
      ["agent", "Which marmalade?\n- plum\n- quince"],
    ];
    assert.deepEqual((await said(client, session.id)).slice(1), open, "while it waits");
    await client.respond({ id: question.id, response: "quince" });
    await allQuiet(client, session.id);
    const all = (await said(client, session.id)).slice(1);
    assert.deepEqual(all.slice(0, 3), [...open, ["person", "quince"]]);
    const { text } = await client.transcript({ id: session.id });
    assert.match(
      text,
      /· sim · trigger ·[^\n]*\n\nWhich marmalade\?[^]*· person · trigger ·[^\n]*\n\nquince/,
    );
    const { hits } = await client.search({ query: "marmalade author:agent", id: "all" });
    assert.equal(hits.length, 1);
    assert.equal((await client.search({ query: "quince author:person", id: "all" })).hits.length, 2);
  } finally {
    await home.close();
  }
});

test("an answer that a parent gave to its child's form is its own, not the person's", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const kid = JSON.stringify({
      name: "kid",
      prompt: "sim> ask Which marmalade? | plum | quince\nsim> say ok",
    });
    const prompt = `sim> tool spawn_session ${kid}\nsim> say spawned`;
    const { session: root } = await client.create({ name: "root", cwd: home.work, prompt });
    const child = await eventually(
      "a child",
      async () => (await client.children({ id: root.id })).sessions[0],
    );
    const question = await asked(client, child.id);
    const answer = JSON.stringify({ triggerId: question.shortId, response: "plum" });
    await client.prompt({ id: root.id, prompt: `sim> tool respond_to_trigger ${answer}\nsim> say told` });
    const answered = await eventually("it is answered", async () => {
      const words = await said(client, child.id);
      return words.find(([, text]) => text === "plum");
    });
    assert.equal(answered[0], "session");
  } finally {
    await home.close();
  }
});
