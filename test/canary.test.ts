import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, describe, test } from "node:test";
import pg from "pg";
import type { Trigger } from "../src/contract/index.ts";
import { sampleInnocents, type SampleSecret, sampleSecrets } from "../src/secrets/testing/sample-secret.ts";
import { type TestPostgres, testPostgres } from "../src/store/testing/test-postgres.ts";
import { seedsOf } from "../src/testing/seeds.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, running } from "./support/family.ts";
import { messagesOf } from "./support/feed-reader.ts";
import { script, spawnStep, tool } from "./support/script.ts";

/** Each path has different secrets, so that a leaked one identifies the path it took. */
const WAYS =
  "prompt title output command callback checkpoint plan question answer request permission fired error steer void".split(
    " ",
  );
const SEED = seedsOf(import.meta.filename)[0]! * 100;
const secretsOf = (way: string): SampleSecret[] => sampleSecrets(SEED + WAYS.indexOf(way));
const textOf = (way: string): string =>
  secretsOf(way)
    .map(({ text }) => text)
    .join("\n");
/** Joins secrets into one line, for commands that end at a line break. Leaves out matches of `without`. */
const linesOf = (way: string, without: RegExp): string =>
  secretsOf(way)
    .filter(({ text }) => !without.test(text.trim()))
    .map(({ text }) => text.trim())
    .join(" ");
/** The agent's memory holds these messages exactly as they were sent. */
const SENT = ["prompt", "callback", "answer", "request", "steer", "fired"];
const INNOCENTS = sampleInnocents(SEED + WAYS.length, 200);

describe("forty kinds of secret in everything that is said", { concurrency: 2 }, () => {
  let server: Promise<TestPostgres> | null = null;
  after(async () => (await server)?.stop());

  test("are kept nowhere once they were delivered, and two hundred innocent texts are", () =>
    canary("sqlite"));
  test("are not on PostgreSQL either", async () => canary(await (await (server ??= testPostgres())).url()));
});

async function canary(store: string): Promise<void> {
  assert.ok(secretsOf("prompt").length >= 40);
  const home = new TestHome({ store });
  const env = {
    KINFOLD_LOG_LEVEL: "debug",
    KINFOLD_TEST_LOG_FILE: path.join(home.home, "logs", "canary.log"),
  };
  const following = new AbortController();
  try {
    const client = await home.start({ env });
    const feed = follow(home, following.signal);
    const rootId = await sayEverything(client, home);
    await allOver(client, rootId);
    following.abort();
    const told = await feed;
    assert.match(told, /fragment/, "the feed was followed");
    assertClean("the feed", told);
    assertClean("the feed's fragments", fragmentsOf(told));
    await assertShown(client, rootId);
    assertClean("the API", await everythingShown(client));
    await assertFiles(client, home, store);
    if (store !== "sqlite") assertClean("PostgreSQL", await rowsOf(store));
    const memory = filesBelow(path.join(home.home, "sim")).map((file) => readFileSync(file, "utf8"));
    for (const way of SENT) {
      for (const { kind, secret } of secretsOf(way)) {
        assert.ok(
          memory.some((text) => text.includes(secret)),
          `the agent was sent the ${kind} of the ${way}`,
        );
      }
    }
    await home.stop();
    for (const file of ownFiles(home)) assertClean(file, readFileSync(file, "latin1"));
  } finally {
    following.abort();
    await home.close();
  }
}

/**
 * Sends secrets in prompts, tool output, callbacks, checkpoints, questions and answers, errors, and messages
 * that never arrive.
 */
async function sayEverything(client: Client, home: TestHome): Promise<string> {
  const create = (name: string, prompt: string) =>
    client.create({ name, cwd: home.work, permission: "full", prompt });
  const { session: root } = await client.create({
    name: "canary",
    cwd: home.work,
    permission: "full",
    prompt: textOf("prompt"),
    title: textOf("title").slice(0, 200),
  });
  await client.prompt({ id: root.id, prompt: INNOCENTS.join("\n") });
  const output = inGroups(secretsOf("output"), 6_000);
  for (const [i, group] of output.entries()) writeFileSync(path.join(home.work, `out${i}`), `${group}\n`);
  const innocent = inGroups(
    INNOCENTS.map((text) => ({ text })),
    6_000,
  );
  for (const [i, group] of innocent.entries()) writeFileSync(path.join(home.work, `in${i}`), group);
  await client.prompt({
    id: root.id,
    prompt: script(...output.map((_, i) => `run cat out${i}`), ...innocent.map((_, i) => `run cat in${i}`)),
  });
  writeFileSync(path.join(home.work, "out.sh"), "exit 0\n");
  await client.prompt({
    id: root.id,
    prompt: script(`run sh out.sh ${linesOf("command", /\n/)}`, `plan ${linesOf("plan", /[\n;]/)}`),
  });
  const children = inGroups(secretsOf("callback"), 1_500);
  const spawns = children.map((prompt, i) => spawnStep({ name: `kid${i}`, prompt }));
  await client.prompt({ id: root.id, prompt: script(...spawns) });
  const checkpoint = {
    summary: textOf("checkpoint"),
    entities: inGroups(
      secretsOf("checkpoint").filter(({ text }) => text.length <= 400),
      400,
    ),
    constraints: Object.fromEntries(
      inGroups(secretsOf("checkpoint"), 1_800).map((text, i) => [`c${i}`, text]),
    ),
  };
  await client.prompt({ id: root.id, prompt: script(tool("checkpoint", checkpoint)) });
  await client.checkpoint({ id: root.id, ...checkpoint });
  const questions = inGroups(secretsOf("question"), 3_500).map((question) => ({ question }));
  await client.prompt({ id: root.id, prompt: script(tool("ask_user_question", { questions }), "say asked") });
  await answer(client, { response: textOf("answer") });
  await client.prompt({ id: root.id, prompt: script("ask Which one | a | b", "say heard") });
  await answer(client, { response: textOf("request") });
  for (const log of inGroups(secretsOf("fired"), 3_000)) {
    await client.fire({ id: root.id, type: "ci.failed", payload: { log } });
  }
  const { session: asker } = await client.create({
    name: "asker",
    cwd: home.work,
    permission: "ask",
    prompt: script(`permit ${linesOf("permission", /\n/)}`),
  });
  await answer(client, { action: "deny" });
  await allQuiet(client, asker.id);
  for (const group of inGroups(secretsOf("error"), 600)) {
    // Messages that are queued when a turn fails stay in the inbox until a new one arrives. So each prompt is
    // sent only after the failing turn before it has ended.
    await allQuiet(client, root.id);
    await client.prompt({ id: root.id, prompt: script(`fail ${group.replaceAll("\n", " ")}`) });
  }
  await stopped(client, await create("stopped", script("hang")));
  return root.id;
}

/** Steers one message into a turn. Sends another one, which becomes void because the session is cancelled. */
async function stopped(client: Client, { session }: { session: { id: string } }): Promise<void> {
  await running(client, session.id);
  await client.prompt({ id: session.id, prompt: textOf("steer"), delivery: "steer" });
  await eventually("it was steered into the turn", async () => {
    const { messages } = await client.inbox({ id: session.id, all: true });
    return messages.some((message) => message.carrier === "steer");
  });
  await client.prompt({ id: session.id, prompt: textOf("void") });
  await client.cancel({ id: session.id, reason: textOf("void").slice(0, 400) });
}

async function answer(client: Client, given: { response?: string; action?: "deny" }): Promise<void> {
  const trigger = await eventually<Trigger>("a question is open", async () => {
    const { triggers } = await client.listTriggers({ for: "person" });
    return triggers[0];
  });
  await client.respond({ id: trigger.id, ...given });
  await eventually("it is closed", async () => {
    const { triggers } = await client.listTriggers({ for: "person" });
    return triggers.every((each) => each.id !== trigger.id);
  });
}

async function allOver(client: Client, rootId: string): Promise<void> {
  await allQuiet(client, rootId);
  const { sessions } = await client.list({ limit: 100 });
  for (const { id } of sessions) {
    await eventually(`every message of ${id} has landed or is void`, async () => {
      const { messages } = await client.inbox({ id, all: true });
      return messages.every(({ status }) => status === "landed" || status === "void");
    });
  }
}

/** Checks that innocent text is unchanged in the transcript, and that `[redacted: …]` replaces secrets. */
async function assertShown(client: Client, rootId: string): Promise<void> {
  const { entries } = await client.entries({ id: rootId, limit: 1000 });
  assert.ok(entries.some((entry) => entry.body.text === INNOCENTS.join("\n")));
  const results = entries.filter((entry) => entry.kind === "toolResult").map((entry) => entry.body.text);
  for (const text of INNOCENTS)
    assert.ok(
      results.some((result) => result.includes(text)),
      text,
    );
  const said = JSON.stringify(entries);
  for (const kind of ["anthropic key", "private key", "password", "cookie", "jwt", "credential"]) {
    assert.ok(said.includes(`[redacted: ${kind}]`), kind);
  }
  assertClean("the transcript", said);
  assertClean("search", JSON.stringify(await client.search({ query: "redacted", limit: 50 })));
}

async function assertFiles(client: Client, home: TestHome, store: string): Promise<void> {
  if (store === "sqlite") {
    // The daemon truncates its write-ahead log as soon as it has nothing more to write.
    const log = path.join(home.home, "kinfold.db-wal");
    await eventually("the log is emptied", async () => statSync(log).size === 0);
    await client.backup({ path: path.join(home.home, "backup.db") });
  }
  const files = ownFiles(home);
  const wanted =
    store === "sqlite"
      ? [/kinfold\.db$/, /backup\.db$/, /\.log$/, /rollout-.*\.jsonl$/]
      : [/\.log$/, /rollout-.*\.jsonl$/];
  await eventually("the rollouts are written", async () =>
    ownFiles(home).some((file) => /rollout-.*\.jsonl$/.test(file)),
  );
  for (const pattern of wanted)
    assert.ok(
      ownFiles(home).some((file) => pattern.test(file)),
      String(pattern),
    );
  for (const file of files) assertClean(file, readFileSync(file, "latin1"));
}

/** Returns the files that we write, without the agent's memory and the person's token. */
function ownFiles(home: TestHome): string[] {
  const theirs = [path.join(home.home, "sim"), path.join(home.home, "token")];
  return filesBelow(home.home).filter((file) => !theirs.some((each) => file.startsWith(each)));
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true })
    .map((name) => path.join(folder, String(name)))
    .filter((file) => statSync(file).isFile());
}

async function rowsOf(url: string): Promise<string> {
  const address = new URL(url);
  const schema = address.searchParams.get("schema") ?? "public";
  address.search = "";
  const client = new pg.Client({ connectionString: address.href });
  await client.connect();
  try {
    const tables = await client.query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1",
      [schema],
    );
    assert.ok(tables.rows.length > 8);
    const dumps: string[] = [];
    for (const { name } of tables.rows) {
      const { rows } = await client.query<{ row: string }>(
        `SELECT t::text AS row FROM "${schema}"."${name}" t`,
      );
      dumps.push(...rows.map(({ row }) => row));
    }
    return dumps.join("\n");
  } finally {
    await client.end();
  }
}

/** Returns everything that the API shows of every session. */
async function everythingShown(client: Client): Promise<string> {
  const { sessions } = await client.list({ limit: 100 });
  const parts = await Promise.all(
    sessions.map(async (session) => {
      const { id } = session;
      const { text } = await client.transcript({ id });
      const inbox = await client.inbox({ id, all: true });
      const rest = [await client.triggers({ id }), await client.turns({ id }), await client.receipt({ id })];
      return [text, JSON.stringify([session, inbox, ...rest, await client.entries({ id, limit: 1000 })])];
    }),
  );
  return parts.flat().join("\n");
}

/** Joins the fragments, so that a secret split over several of them is found. */
function fragmentsOf(told: string): string {
  return [...told.matchAll(/^fragment (\{.*\})$/gm)]
    .map(([, data]) => (JSON.parse(data as string) as { text: string }).text)
    .join("");
}

async function follow(home: TestHome, signal: AbortSignal): Promise<string> {
  let told = "";
  try {
    for await (const message of messagesOf(home, { cursor: null, tree: null, signal })) {
      told += `${message.event} ${message.data}\n`;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return told;
}

function assertClean(where: string, text: string): void {
  for (const way of WAYS) {
    for (const { kind, secret } of secretsOf(way)) {
      const at = text.indexOf(secret);
      if (at === -1) continue;
      const around = text.slice(Math.max(0, at - 120), at + secret.length + 60);
      assert.fail(`${where} has the ${kind} of the ${way} (seed ${SEED}): ${JSON.stringify(around)}`);
    }
  }
}

/** Joins texts into groups of limited length. */
function inGroups(parts: readonly { text: string }[], lengthMax: number): string[] {
  const groups: string[] = [];
  for (const { text } of parts) {
    const last = groups.at(-1);
    if (last !== undefined && last.length + text.length < lengthMax)
      groups[groups.length - 1] = `${last}\n${text}`;
    else groups.push(text);
  }
  return groups;
}
