import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Moment } from "../src/kernel/deps.ts";
import { testPostgres } from "../src/store/testing/test-postgres.ts";
import { type Client, type DaemonSetup, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, childNamed } from "./support/family.ts";

const AGENT = fileURLToPath(new URL("./support/ledger-agent.ts", import.meta.url));

/** A home with an agent that keeps a ledger of what it did. `habit` says how the agent loads a session. */
class LedgerHome extends TestHome {
  readonly #folder: string;

  constructor(setup: DaemonSetup, habit: string) {
    super({
      ...setup,
      // Without a PID namespace, so that the agent can kill the daemon.
      env: { KINFOLD_SANDBOX: "guard", KINFOLD_ENFORCEMENT: "mode" },
    });
    this.#folder = path.join(this.work, "ledgers");
    mkdirSync(this.#folder);
    const command = [process.execPath, AGENT, this.#folder, habit];
    writeFileSync(path.join(this.home, "kinfold.yaml"), JSON.stringify({ agents: { ledger: { command } } }));
  }

  /** Starts the daemon, and gives the agent the pid that its step `cut` kills. */
  async startToBeCut(crashAt: Moment | undefined): Promise<Client> {
    const client = await this.start(crashAt === undefined ? {} : { crashAt: { moment: crashAt, count: 2 } });
    writeFileSync(path.join(this.#folder, "daemon.pid"), String(this.pid));
    return client;
  }

  get ledger(): string[] {
    const file = path.join(this.#folder, "ledger");
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  }
}

interface Told {
  readonly client: Client;
  readonly home: LedgerHome;
  readonly parentId: string;
  /** The child whose turn was cut. */
  readonly child: Awaited<ReturnType<typeof childNamed>>;
}

interface Cut {
  /** How the agent loads a session. */
  readonly habit: string;
  /** What the child is told to do. Its step `cut` kills the daemon. */
  readonly steps: readonly string[];
  /** The daemon kills itself when the child's turn reaches this moment. The parent's turn has reached it once. */
  readonly crashAt?: Moment;
}

/** Lets a child work until the daemon dies, restarts the daemon, and returns what is left. */
async function cutAndRestart(home: LedgerHome, { steps, crashAt }: Cut): Promise<Told> {
  const client = await home.startToBeCut(crashAt);
  const parent = { agent: "sim", name: "boss", prompt: "sim> say ready", permission: "full" } as const;
  const { session } = await client.create({ ...parent, cwd: home.work });
  await allQuiet(client, session.id);
  const prompt = steps.map((step) => `do> ${step}`).join("\n");
  // The daemon may die before it has answered.
  await client.spawn({ id: session.id, agent: "ledger", name: "payer", prompt }).catch(() => undefined);
  await home.ended();
  const after = await home.start();
  await allQuiet(after, session.id);
  const child = await childNamed(after, session.id, "payer");
  return { client: after, home, parentId: session.id, child };
}

function stories(setup: () => Promise<DaemonSetup>): void {
  const story = (name: string, cut: Cut, check: (told: Told) => Promise<void>): void => {
    test(name, async () => {
      const home = new LedgerHome(await setup(), cut.habit);
      try {
        await check(await cutAndRestart(home, cut));
      } finally {
        await home.close();
      }
    });
  };

  story(
    "an agent that cannot load, killed right after it reported a call, is not prompted again",
    { habit: "cannot-load", steps: ["call pay-the-invoice", "pay once", "cut", "say Paid."] },
    async ({ client, home, parentId, child }) => {
      assert.deepEqual(home.ledger, ["once"]);
      assert.equal(child.outcome, "interrupted");
      const [callback] = await callbacksTo(client, parentId);
      assert.match(callback?.text ?? "", /was INTERRUPTED .*cannot be resumed by itself/);
    },
  );

  story(
    "an agent that cannot load, killed before it gave any sign, is not prompted again",
    { habit: "cannot-load", steps: ["pay once", "cut", "say Paid."] },
    async ({ client, home, parentId, child }) => {
      assert.deepEqual(home.ledger, ["once"]);
      assert.equal(child.outcome, "interrupted");
      const [callback] = await callbacksTo(client, parentId);
      assert.match(callback?.text ?? "", /It is unknown whether the agent received this prompt/);
    },
  );

  story(
    "an agent that has no such session, killed when its first call was stored, is not prompted again",
    {
      habit: "forgets",
      steps: ["call pay-the-invoice", "pay once", "say Paid."],
      crashAt: "work.reported",
    },
    async ({ home, child }) => {
      assert.ok(home.ledger.length <= 1, "the kill may have come before the work");
      assert.equal(child.outcome, "interrupted");
    },
  );

  story(
    "an agent that can load and has no such session is prompted again, because it has done nothing",
    { habit: "forgets", steps: ["cut", "pay once", "say Paid."] },
    async ({ home, child }) => {
      assert.deepEqual(home.ledger, ["once"]);
      assert.equal(child.outcome, "completed");
    },
  );
}

describe("what an agent did before a kill is not done again, on SQLite", { concurrency: 3 }, () => {
  stories(async () => ({}));
});

describe("what an agent did before a kill is not done again, on PostgreSQL", { concurrency: 3 }, () => {
  let postgres: Awaited<ReturnType<typeof testPostgres>>;
  before(async () => {
    postgres = await testPostgres();
  });
  after(() => postgres.stop());
  stories(async () => ({ store: await postgres.url() }));
});
