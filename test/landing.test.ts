import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Message } from "../src/contract/index.ts";
import { testPostgres } from "../src/store/testing/test-postgres.ts";
import { type Client, type DaemonSetup, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, quiet } from "./support/family.ts";
import { openGate, script, tool } from "./support/script.ts";

const GATED = fileURLToPath(new URL("./support/gated-agent.ts", import.meta.url));
const OPEN = "open";
const MARK = "You may have seen this already";

type Kind = Message["kind"];

/** A daemon with the agent `gated`, which starts only while its gate is open. */
class Gated {
  readonly folder = mkdtempSync(path.join(tmpdir(), "kinfold-gated-"));
  readonly home: TestHome;
  client!: Client;

  constructor(setup: DaemonSetup) {
    const command = [process.execPath, GATED, path.join(this.folder, OPEN), this.folder];
    this.home = new TestHome({
      ...setup,
      env: { KINFOLD_ENFORCEMENT: "mode", ...setup.env },
      yaml: JSON.stringify({ agents: { gated: { command } } }),
    });
  }

  async close(): Promise<void> {
    this.open();
    await this.home.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  open(): void {
    openGate(this.folder, OPEN);
  }

  /** Restarts the daemon with the gate closed, so that no agent can finish its start. */
  async shut(options: Parameters<TestHome["start"]>[0] = {}): Promise<void> {
    await this.home.stop();
    rmSync(path.join(this.folder, OPEN));
    this.client = await this.home.start(options);
  }

  /** Counts how often agents received a message, and how often it was marked as possibly repeated. */
  received(deliveryId: string): { times: number; marked: number } {
    const lines = readdirSync(this.folder)
      .filter((name) => name.endsWith(".jsonl"))
      .flatMap((name) => readFileSync(path.join(this.folder, name), "utf8").split("\n"))
      .filter((line) => line.startsWith('{"kind":"user"') && line.includes(`:${deliveryId} -->`));
    return { times: lines.length, marked: lines.filter((line) => line.includes(MARK)).length };
  }
}

/** For each kind: a session's first prompt, and a call that sends the session a message of this kind. */
const SETUPS: Readonly<Record<Exclude<Kind, "notice">, { first: string; send: Send }>> = {
  prompt: {
    first: script("say ready"),
    send: (client, id) => client.prompt({ id, prompt: script("say P") }),
  },
  tell: { first: script("say ready"), send: (client, id) => client.tell({ id, message: script("say T") }) },
  trigger: {
    first: script("say ready"),
    send: (client, id) => client.fire({ id, type: "build_done", payload: { ok: true } }),
  },
  callback: {
    first: script("say ready"),
    send: (client, id) => client.spawn({ id, agent: "sim", name: "kid", prompt: script("say KID-RESULT") }),
  },
  answer: {
    first: script(
      tool("ask_user_question", { questions: [{ question: "Which?" }], timeoutMs: 1 }),
      "say asked",
    ),
    send: async (client) => {
      const { triggers } = await client.listTriggers({ for: "all" });
      await client.respond({ id: triggers[0]!.id, response: "small" });
    },
  },
};

type Send = (client: Client, id: string) => Promise<unknown>;

/** Stops a turn while its agent is still starting. The turn has already taken a message of this kind. */
async function stopWhileStarting(gated: Gated, kind: Exclude<Kind, "notice">, isKilled: boolean) {
  const { first, send } = SETUPS[kind];
  gated.open();
  gated.client = await gated.home.start();
  const { session } = await gated.client.create({ agent: "gated", cwd: gated.home.work, prompt: first });
  await eventually("its first turn is over", async () => {
    const { turns } = await gated.client.turns({ id: session.id });
    return turns[0]?.status === "completed";
  });
  await gated.shut(isKilled ? { crashAt: { moment: "cancel.committed" } } : {});
  await send(gated.client, session.id);
  const find = async (): Promise<Message> => {
    const { messages } = await gated.client.inbox({ id: session.id, all: true });
    return messages.findLast((each) => each.kind === kind)!;
  };
  const taken = await eventually("the message is taken", async () => {
    const message = await find();
    return message?.status === "taken" && message;
  });
  await eventually("its agent is starting", async () => gated.home.agents().length > 0);
  const stopping = gated.client.cancel({ id: session.id, turnOnly: true }).catch((error: unknown) => error);
  if (isKilled) {
    await gated.home.ended();
    gated.client = await gated.home.start();
  }
  await stopping;
  gated.open();
  const after = await quiet(gated.client, session.id);
  assert.equal(after.outcome, "cancelled");
  assert.equal(gated.received(taken.deliveryId).times, 0, "the agent never had it");
  return { session, taken, find };
}

function stories(setup: () => Promise<DaemonSetup>, kills: readonly boolean[]): void {
  for (const kind of ["callback", "answer", "trigger"] as const) {
    for (const isKilled of kills) {
      const how = isKilled
        ? "stopped while its agent started, then the daemon killed"
        : "stopped while starting";
      test(`a turn ${how}, gives its ${kind} back, and the agent gets it later`, async () => {
        const gated = new Gated(await setup());
        try {
          const { session, taken, find } = await stopWhileStarting(gated, kind, isKilled);
          assert.equal((await find()).status, "queued");
          await gated.client.prompt({ id: session.id, prompt: script("say next") });
          await allQuiet(gated.client, session.id);
          assert.equal((await find()).status, "landed");
          const { times, marked } = gated.received(taken.deliveryId);
          assert.deepEqual([times, marked], [1, isKilled ? 1 : 0]);
        } finally {
          await gated.close();
        }
      });
    }
  }

  for (const kind of ["prompt", "tell"] as const) {
    for (const isKilled of kills) {
      const how = isKilled
        ? "stopped while its agent started, then the daemon killed"
        : "stopped while starting";
      test(`a turn ${how}, does not call its ${kind} landed, says why it is void, and repeats no work`, async () => {
        const gated = new Gated(await setup());
        try {
          const { session, taken, find } = await stopWhileStarting(gated, kind, isKilled);
          const message = await find();
          assert.equal(message.status, "void");
          assert.match(
            message.voidReason ?? "",
            isKilled ? /it may have reached the agent/ : /stopped before it began/,
          );
          await gated.client.prompt({ id: session.id, prompt: script("say next") });
          await allQuiet(gated.client, session.id);
          assert.equal(gated.received(taken.deliveryId).times, 0);
        } finally {
          await gated.close();
        }
      });
    }
  }
}

describe("messages taken by a stopped turn, on SQLite", { concurrency: 3 }, () => {
  stories(async () => ({}), [true, false]);
});

describe("messages taken by a stopped turn, on PostgreSQL", { concurrency: 3 }, () => {
  let postgres: Awaited<ReturnType<typeof testPostgres>>;
  before(async () => {
    postgres = await testPostgres();
  });
  after(() => postgres.stop());
  stories(async () => ({ store: await postgres.url() }), [true]);
});
