import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, describe, test } from "node:test";
import pg from "pg";
import { sampleInnocents, sampleSecrets, type SampleSecret } from "../src/domain/sample-secret.spec.ts";
import { addressOf, clientOptions } from "../src/store/postgres/connection.ts";
import { type TestPostgres, testPostgres } from "../src/store/test-postgres.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet } from "./support/family.ts";
import { script, spawnStep, tool } from "./support/script.ts";

const KINDS_MIN = 40;
const INNOCENTS = 200;

describe("secrets", { concurrency: 2 }, () => {
  let server: Promise<TestPostgres> | null = null;
  after(async () => (await server)?.stop());

  test("of forty kinds are kept nowhere once their messages have landed, and what is innocent is kept whole", () =>
    canary("sqlite"));
  test("are in no row of PostgreSQL either", async () =>
    canary(await (await (server ??= testPostgres())).url()));
});

/** Every way in has secrets of its own, so that a leak says where it was. */
const WAYS = [
  "prompt",
  "toolOutput",
  "callback",
  "checkpoint",
  "question",
  "answer",
  "tell",
  "fired",
  "error",
  "title",
  "plan",
  "permission",
] as const;
type Way = (typeof WAYS)[number];

async function canary(store: string): Promise<void> {
  const home = new TestHome({ store });
  const seed = Math.floor(Math.random() * 1e6) * 100;
  const sent = new Map<Way, SampleSecret[]>(WAYS.map((way, at) => [way, sampleSecrets(seed + at)]));
  // The steps of a plan are divided by semicolons, and so are cookies.
  sent.set(
    "plan",
    sent.get("plan")!.filter(({ text: words }) => !words.includes(";")),
  );
  assert.ok(sent.get("prompt")!.length >= KINDS_MIN);
  const innocents = sampleInnocents(seed + WAYS.length, INNOCENTS);
  const text = (way: Way): string =>
    sent
      .get(way)!
      .map((each) => each.text)
      .join("\n\n");
  try {
    const client = await home.start();
    const heard = listen(home);
    await send(client, home, { text, innocents });
    const shown = await everythingShown(client);
    for (const each of innocents) assert.ok(shown.includes(each), `changed: ${each}`);
    const backup = path.join(home.home, "copy.db");
    if (store === "sqlite") await client.backup({ path: backup });
    const rows = store === "sqlite" ? "" : await rowsOf(store);
    await heard.close();
    await home.stop();
    const kept = { ...filesOf(home.home), feed: heard.text(), shown, rows };
    const leaks = [...sent].flatMap(([way, secrets]) =>
      secrets.flatMap(({ kind, secret }) =>
        Object.entries(kept).flatMap(([where, what]) => {
          const at = Math.max(what.indexOf(secret), what.indexOf(JSON.stringify(secret).slice(1, -1)));
          const around = what.slice(Math.max(0, at - 60), at).replaceAll(/[^\x20-\x7e]/g, "·");
          return at === -1 ? [] : [`${kind}, sent by ${way}, is in ${where} behind "${around}"`];
        }),
      ),
    );
    assert.deepEqual(leaks, [], `with the seed ${seed}`);
  } finally {
    await home.close();
  }
}

interface Sending {
  readonly text: (way: Way) => string;
  readonly innocents: readonly string[];
}

async function send(client: Client, home: TestHome, { text, innocents }: Sending): Promise<void> {
  const cwd = home.work;
  const prompts = `${text("prompt")}\n\n${innocents.join("\n")}`;
  const said = await client.create({
    name: "said",
    cwd,
    prompt: prompts,
    title: text("title").slice(0, 200),
  });
  writeFileSync(path.join(cwd, "output.txt"), `${text("toolOutput")}\n\n${innocents.join("\n")}\n`);
  writeFileSync(path.join(cwd, "report.txt"), `${text("callback")}\n`);
  const line = (words: string): string => words.replaceAll("\n", " ");
  const root = await client.create({
    name: "root",
    cwd,
    prompt: script(
      "run cat output.txt",
      tool("checkpoint", { summary: text("checkpoint"), entities: ["src/a.ts"] }),
      spawnStep({ name: "kid", prompt: text("callback") }),
      `plan ${line(text("plan"))}`,
      tool("ask_user_question", { questions: [{ question: text("question") }] }),
      `permit ${line(text("permission"))}`,
      "say done",
    ),
  });
  await answer(client, "ask_user_question", { response: text("answer") });
  await answer(client, "permission", { action: "deny" });
  const broken = await client.create({ name: "broken", cwd, prompt: script(`fail ${line(text("error"))}`) });
  for (const { session } of [said, root, broken]) await allQuiet(client, session.id);
  await client.tell({ id: said.session.id, message: text("tell") });
  await client.fire({ id: said.session.id, type: "ci.failed", payload: { log: text("fired") } });
  await allQuiet(client, said.session.id);
}

async function answer(client: Client, type: string, given: object): Promise<void> {
  const trigger = await eventually(`a ${type} is open`, async () => {
    const { triggers } = await client.listTriggers({ for: "person" });
    return triggers.find((each) => each.type === type);
  });
  await client.respond({ id: trigger.id, ...given });
}

/** All that the API tells of every session. */
async function everythingShown(client: Client): Promise<string> {
  const { sessions } = await client.list({ limit: 100 });
  const parts = await Promise.all(
    sessions.map(async (session) => {
      const { id } = session;
      const texts = await client.entries({ id, limit: 1000 });
      const whole = texts.entries.map((entry) => entry.body.text).join("\n");
      const rest = [session, texts, await client.inbox({ id, all: true }), await client.triggers({ id })];
      return [whole, JSON.stringify([...rest, await client.turns({ id }), await client.receipt({ id })])];
    }),
  );
  const found = await client.search({ query: "password token key use", id: "all", limit: 50 });
  return [...parts.flat(), JSON.stringify(found)].join("\n");
}

/** The feed as it goes over the wire, live fragments included. */
function listen(home: TestHome): { text(): string; close(): Promise<void> } {
  const end = new AbortController();
  let heard = "";
  const done = (async () => {
    const response = await fetch(`${home.url}/api/events`, {
      headers: { authorization: `Bearer ${home.token}` },
      signal: end.signal,
    });
    const decoder = new TextDecoder();
    for await (const bytes of response.body!) heard += decoder.decode(bytes, { stream: true });
  })().catch((error: unknown) => {
    if (!end.signal.aborted) throw error;
  });
  return {
    text: () => `${heard}\n${fragments(heard)}`,
    async close() {
      end.abort();
      await done;
    },
  };
}

/** A secret that was cut into several fragments is one for who reads them together. */
function fragments(heard: string): string {
  return [...heard.matchAll(/^data: (\{.*\})$/gm)]
    .map(([, data]) => JSON.parse(data!) as { text?: string; kind?: string })
    .filter((data) => data.kind !== undefined)
    .map((data) => data.text ?? "")
    .join("");
}

/** Every file of the home as bytes, but the person's token and what the agent itself keeps. */
function filesOf(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => name !== "token" && !name.startsWith("sim") && statSync(path.join(folder, name)).isFile(),
  );
  assert.ok(files.length > 0);
  return Object.fromEntries(files.map((name) => [name, readFileSync(path.join(folder, name), "latin1")]));
}

async function rowsOf(store: string): Promise<string> {
  const address = addressOf(store);
  const client = new pg.Client(clientOptions(address));
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1",
      [address.schema],
    );
    assert.ok(rows.length > 10);
    const texts = await rows.reduce(async (before, { name }) => {
      const all = await before;
      const found = await client.query<{ row: string }>(`SELECT t::text AS row FROM "${name}" t`);
      return [...all, ...found.rows.map(({ row }) => row)];
    }, Promise.resolve<string[]>([]));
    return texts.join("\n");
  } finally {
    await client.end();
  }
}
