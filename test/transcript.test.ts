import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import type { Entry } from "../src/contract/index.ts";
import { type TestPostgres, testPostgres } from "../src/store/testing/test-postgres.ts";
import { randomFrom } from "../src/testing/seeds.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet } from "./support/family.ts";
import { FeedReader } from "./support/feed-reader.ts";
import { gate, openGate, script } from "./support/script.ts";

const LINES = 400;

describe("a transcript", { concurrency: 2 }, () => {
  let server: Promise<TestPostgres> | null = null;
  after(async () => (await server)?.stop());

  test("holds after a kill in mid-stream all that the feed had shown as finished", () => killed("sqlite"));
  test("does so on PostgreSQL", async () => killed(await (await (server ??= testPostgres())).url()));

  test("is read from its tail, from any point, as text and as Markdown, and is never written anew", async () => {
    const home = new TestHome();
    try {
      const client = await home.start();
      const prompt = script(...lines(30), "write made.txt hello", "plan one; two");
      const { session } = await client.create({ name: "teller", cwd: home.work, prompt });
      await allQuiet(client, session.id);
      const { entries, total } = await client.entries({ id: session.id, limit: 1000 });
      assert.deepEqual(
        entries.map((entry) => entry.index),
        Array.from({ length: total }, (_, index) => index),
      );
      const tail = await client.entries({ id: session.id, limit: 5 });
      assert.deepEqual(tail.entries, entries.slice(-5));
      const before = await client.entries({ id: session.id, before: tail.first, limit: 5 });
      assert.deepEqual(before.entries, entries.slice(-10, -5));
      const middle = await client.entries({ id: session.id, after: 9, limit: 3 });
      assert.deepEqual(middle.entries, entries.slice(10, 13));
      const authors = new Set(entries.map((entry) => `${entry.author} ${entry.kind}`));
      for (const each of ["person text", "agent text", "agent toolCall", "tool toolResult", "agent plan"])
        assert.ok(authors.has(each), each);
      const markdown = (await client.transcript({ id: session.id })).text;
      const text = (await client.transcript({ id: session.id, format: "text" })).text;
      for (const each of [markdown, text]) assert.match(each, /line 0 is said[^]*line 29 is said/);
      await client.prompt({ id: session.id, prompt: "sim> say more" });
      await allQuiet(client, session.id);
      const later = await client.entries({ id: session.id, limit: 1000 });
      assert.deepEqual(later.entries.slice(0, total), entries);
      assert.ok(later.total > total);
    } finally {
      await home.close();
    }
  });
});

const lines = (count: number): string[] => Array.from({ length: count }, (_, at) => `say line ${at} is said`);

async function killed(store: string): Promise<void> {
  const home = new TestHome({ store });
  let reader: FeedReader | null = null;
  try {
    let client = await home.start();
    reader = new FeedReader(home, { chance: randomFrom(1), cutsMax: 0 });
    await eventually("the feed is open", async () => reader?.firstCursor);
    const slow = lines(LINES).flatMap((line, at) => (at % 40 === 39 ? [line, "sleep 30"] : [line]));
    const prompt = script(...slow, gate("end"), "say over");
    const { session } = await client.create({ name: "teller", cwd: home.work, prompt });
    await eventually("some of it was shown", async () => shown(reader!, session.id).size > LINES / 4);
    const entriesBefore = await all(client, session.id);
    await home.kill();
    const seen = shown(reader, session.id);
    client = await home.start();
    openGate(home.work, "end");
    await allQuiet(client, session.id);
    const now = await all(client, session.id);
    // The message that was being written when it was read is still open: it may have grown, and the kill cut it.
    const [open, finished] = partition(entriesBefore, ({ body }) => body.open === true);
    for (const entry of finished) assert.deepEqual(now[entry.index], entry, "what was read before stands");
    for (const { index, body } of open)
      assert.ok(now[index]?.body.text?.startsWith(body.text ?? ""), `the open entry ${index} lost its text`);
    for (const index of seen) assert.equal(now[index]?.index, index, `entry ${index} was shown and is gone`);
    const said = now.filter(({ author, kind }) => author === "agent" && kind === "text");
    const told = said.map((entry) => entry.body.text).join("\n");
    assert.match(told, /line 0 is said/);
    assert.match(told, /over$/);
  } finally {
    await reader?.close();
    await home.close();
  }
}

/** Returns the indexes of the entries that appeared in the feed. */
function shown(reader: FeedReader, sessionId: string): Set<number> {
  const appended = reader.events.filter(
    (event) => event.type === "entry.appended" && event.sessionId === sessionId,
  );
  return new Set(appended.map(({ data }) => Number(data["index"])));
}

function partition<T>(values: T[], isChosen: (value: T) => boolean): [T[], T[]] {
  return [values.filter(isChosen), values.filter((value) => !isChosen(value))];
}

async function all(client: Client, id: string): Promise<Entry[]> {
  const { entries } = await client.entries({ id, after: -1, limit: 1000 });
  return entries;
}
