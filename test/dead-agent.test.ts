import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import type { Message } from "../src/contract/index.ts";
import { testPostgres } from "../src/store/testing/test-postgres.ts";
import { type Client, type DaemonSetup, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, quiet } from "./support/family.ts";
import { script } from "./support/script.ts";

const MARK = "You may have seen this already";

/** Returns the user messages that agents of this home have received. */
function received(home: TestHome): string[] {
  const folder = path.join(home.home, "sim");
  const lines = readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(path.join(folder, name), "utf8").split("\n"));
  return lines.filter((line) => line.startsWith('{"kind":"user"'));
}

const withId = (lines: readonly string[], { deliveryId }: Message): string[] =>
  lines.filter((line) => line.includes(`:${deliveryId} -->`));

/** Signals the agent itself, not the process that supervises it. */
function signal(home: TestHome, name: NodeJS.Signals): void {
  const isAgent = (command: string): boolean =>
    command.startsWith(process.execPath) && command.includes("sim/agent");
  const pids = home.agents().flatMap(({ pid, command }) => (isAgent(command) ? [pid] : []));
  // Until its exec, a forked command has the agent's command line. The agent has the lowest of these pids.
  process.kill(Math.min(...pids), name);
}

async function messageOf(client: Client, id: string, kind: Message["kind"]): Promise<Message> {
  const { messages } = await client.inbox({ id, all: true });
  return messages.findLast((each) => each.kind === kind)!;
}

async function taken(client: Client, id: string, kind: Message["kind"]): Promise<Message> {
  return eventually(`the ${kind} is taken`, async () => {
    const message = await messageOf(client, id, kind);
    return message?.status === "taken" && message;
  });
}

async function entriesOf(client: Client, id: string, message: Message): Promise<number> {
  const { entries } = await client.entries({ id, limit: 1000 });
  return entries.filter((entry) => entry.body.messageId === message.id).length;
}

function stories(setup: () => Promise<DaemonSetup>): void {
  const story = (name: string, tell: (home: TestHome, client: Client) => Promise<void>): void => {
    test(name, async () => {
      const home = new TestHome(await setup());
      try {
        await tell(home, await home.start());
      } finally {
        await home.close();
      }
    });
  };
  const create = async (home: TestHome, client: Client, prompt: string): Promise<string> => {
    const { session } = await client.create({ cwd: home.work, prompt, permission: "full" });
    return session.id;
  };

  story(
    "a tell that an idle agent died with before anybody noticed reaches the next process, once",
    async (home, client) => {
      const id = await create(home, client, script("say ready"));
      await quiet(client, id);
      // A stopped process reads nothing, so a message sent now does not arrive before the kill.
      signal(home, "SIGSTOP");
      await client.tell({ id, message: script("say TOLD") });
      const tell = await taken(client, id, "tell");
      signal(home, "SIGKILL");
      const session = await quiet(client, id);
      assert.equal(session.outcome, "completed");
      assert.equal((await messageOf(client, id, "tell")).status, "landed");
      const lines = withId(received(home), tell);
      assert.deepEqual([lines.length, lines.filter((line) => line.includes(MARK)).length], [1, 0]);
      assert.equal(await entriesOf(client, id, tell), 1);
    },
  );

  story("work of a steered tell is not repeated when its agent dies after it", async (home, client) => {
    const id = await create(home, client, script("say on", "hang"));
    await eventually("it works", async () => (await client.get({ id })).session.agentSessionId !== null);
    await eventually("it is told while it works", async () => received(home).length === 1);
    await client.tell({ id, message: script("run echo once >> ledger.txt", "say DONE") });
    await eventually("the told work is done", async () => existsSync(path.join(home.work, "ledger.txt")));
    signal(home, "SIGKILL");
    assert.equal((await quiet(client, id)).outcome, "failed");
    const tell = await messageOf(client, id, "tell");
    assert.deepEqual([tell.status, tell.carrier], ["landed", "steer"]);
    await client.prompt({ id, prompt: script("say next") });
    await allQuiet(client, id);
    assert.equal(readFileSync(path.join(home.work, "ledger.txt"), "utf8"), "once\n");
    assert.equal(withId(received(home), tell).length, 1);
  });

  story(
    "a steered tell that an agent died with before it took it is given back unmarked, and sent once",
    async (home, client) => {
      const id = await create(home, client, script("say on", "hang"));
      await eventually("it works", async () => received(home).length === 1);
      signal(home, "SIGSTOP");
      await client.tell({ id, message: script("say TOLD") });
      const tell = await taken(client, id, "tell");
      signal(home, "SIGKILL");
      assert.equal((await quiet(client, id)).outcome, "failed");
      assert.equal((await messageOf(client, id, "tell")).status, "queued");
      await client.prompt({ id, prompt: script("say next") });
      await allQuiet(client, id);
      assert.equal((await messageOf(client, id, "tell")).status, "landed");
      const lines = withId(received(home), tell);
      assert.deepEqual([lines.length, lines.filter((line) => line.includes(MARK)).length], [1, 0]);
      assert.equal(await entriesOf(client, id, tell), 1);
    },
  );
}

describe("an agent that dies with a message, on SQLite", { concurrency: 3 }, () => {
  stories(async () => ({}));
});

describe("an agent that dies with a message, on PostgreSQL", { concurrency: 3 }, () => {
  let postgres: Awaited<ReturnType<typeof testPostgres>>;
  before(async () => {
    postgres = await testPostgres();
  });
  after(() => postgres.stop());
  stories(async () => ({ store: await postgres.url() }));
});
