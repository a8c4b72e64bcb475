import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { type TestPostgres, testPostgres } from "../src/store/testing/test-postgres.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet } from "./support/family.ts";

const SAID = "The parser loses the marmalade when a line is empty.";
const PROMPT = `sim> say ${SAID}\nsim> sleep 600000`;

describe("the message an agent is writing", { concurrency: 2 }, () => {
  let server: Promise<TestPostgres> | null = null;
  after(async () => (await server)?.stop());

  test("is the last entry, marked open, and is kept as cut by kill -9", () => openAndCut("sqlite"));
  test("is so on PostgreSQL too", async () => openAndCut(await (await (server ??= testPostgres())).url()));
});

async function openAndCut(store: string): Promise<void> {
  const home = new TestHome({ store });
  try {
    const client = await home.start();
    const { session } = await client.create({ name: "root", cwd: home.work, prompt: PROMPT });
    const before = await openEntry(client, session.id);
    assert.equal(before.body.text, SAID, "whole, although nothing followed it");
    await isSeen(client, session.id, before.index);

    await home.kill();
    const again = await home.start();
    const cut = await eventually("it is cut", async () => {
      const { entries } = await again.entries({ id: session.id });
      return entries.find(({ body }) => body.cut === true);
    });
    assert.deepEqual([cut.index, cut.body.text, cut.kind], [before.index, SAID, "text"]);
    const { text } = await again.transcript({ id: session.id });
    assert.match(text, / · cut off · /);
    await again.cancel({ id: session.id });
    await allQuiet(again, session.id);
    const { entries } = await again.entries({ id: session.id });
    const said = entries.filter(({ body, author }) => author === "agent" && body.text === SAID);
    assert.equal(said.filter(({ body }) => body.open === true).length, 0, "nothing stays open");
    assert.equal(said.filter(({ index }) => index === before.index).length, 1);
  } finally {
    await home.close();
  }
}

async function openEntry(client: Client, id: string) {
  return eventually("the message is open", async () => {
    const { entries, last, total } = await client.entries({ id });
    const open = entries.at(-1);
    if (open?.body.open !== true) return null;
    assert.deepEqual([open.index, last], [total, total - 1], "at the index its entry will have");
    return open;
  });
}

async function isSeen(client: Client, id: string, index: number): Promise<void> {
  const { session } = await client.get({ id });
  assert.equal(session.evidence.reason, "writing");
  const { text } = await client.transcript({ id });
  assert.match(text, / · still being written · [^\n]*\n\n[^\n]*marmalade/);
  const { hits } = await client.search({ query: "marmalade", id: "all" });
  const hit = hits.find(({ open }) => open === true);
  assert.deepEqual([hit?.index, hit?.sessionId], [index, id]);
  const { entries } = await client.entries({ id, after: index - 1 });
  assert.deepEqual(
    entries.map((each) => each.index),
    [index],
  );
  assert.equal((await client.entries({ id, before: index })).entries.at(-1)?.body.open, undefined);
}

test("a message that ends becomes its entry once, at the index it was open at", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const prompt = `sim> say ${SAID}\nsim> sleep 1500\nsim> run true\nsim> say Done.`;
    const { session } = await client.create({ name: "root", cwd: home.work, prompt });
    const open = await openEntry(client, session.id);
    await allQuiet(client, session.id);
    const { entries } = await client.entries({ id: session.id });
    const said = entries.filter(({ body }) => body.text === SAID);
    assert.deepEqual(
      said.map(({ index, body }) => [index, body.open, body.cut]),
      [[open.index, undefined, undefined]],
    );
    const { hits } = await client.search({ query: "marmalade", id: "all", limit: 50 });
    assert.equal(hits.filter(({ author }) => author === "agent").length, 1);
  } finally {
    await home.close();
  }
});

test("an orderly stop keeps every word of an open message", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const { session } = await client.create({ name: "root", cwd: home.work, prompt: PROMPT });
    await openEntry(client, session.id);
    await home.stop();
    const again = await home.start();
    const { entries } = await again.entries({ id: session.id });
    assert.ok(entries.some(({ body, author }) => author === "agent" && body.text === SAID));
    await again.cancel({ id: session.id });
  } finally {
    await home.close();
  }
});

test("half of a secret at the end of an open message is not kept, but the text before it is", async () => {
  const home = new TestHome();
  try {
    const client = await home.start();
    const half = ["ghp", "A1b2C3d4E5f6G7h8"].join("_");
    const prompt = `sim> say The token of the build is in the file: ${half}\nsim> sleep 600000`;
    const { session } = await client.create({ name: "root", cwd: home.work, prompt });
    const open = await openEntry(client, session.id);
    assert.equal(open.body.text, "The token of the build is in the file: ");
    await client.cancel({ id: session.id });
  } finally {
    await home.close();
  }
});
