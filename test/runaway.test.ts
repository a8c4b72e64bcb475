import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Refusal, type Session } from "../src/contract/index.ts";
import { testPostgres } from "../src/store/testing/test-postgres.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { toolReplies } from "./support/family.ts";

const AGENT = fileURLToPath(new URL("./support/runaway-agent.ts", import.meta.url));
const PERSON = fileURLToPath(new URL("./support/runaway-person.ts", import.meta.url));

const LIMITS = {
  depthMax: 2,
  childrenMax: 2,
  sessionsMax: 6,
  spawnsPerMinuteMax: 25,
  spawnsMax: 40,
  turnsMax: 3,
  processesMax: 6,
};
const BUDGET_USD = 1.2;
const CALL_USD = 0.02;
const YAML = JSON.stringify({
  agents: { runaway: { command: [process.execPath, AGENT], model: "sim-1" } },
  prices: { "sim-1": { input: 1, output: 1 } },
  limits: LIMITS,
  cancelGraceMs: 500,
});

describe("an agent that spawns in a loop, at every depth, over every route", () => {
  test("is refused at every limit with the reason, and stops with its budget", () => runAway({}));

  describe("on PostgreSQL", () => {
    let postgres: Awaited<ReturnType<typeof testPostgres>>;
    before(async () => {
      postgres = await testPostgres();
    });
    after(() => postgres.stop());
    test("too", async () => runAway({ store: await postgres.url() }));
  });
});

async function runAway(setup: { store?: string }): Promise<void> {
  const home = new TestHome({ ...setup, yaml: YAML });
  try {
    const client = await home.start();
    const prompt = "run away";
    const ask = { cwd: home.work, agent: "runaway", prompt, limits: { usd: BUDGET_USD } };
    const { session: root } = await client.create(ask);
    const stolen = { url: home.url, token: home.token, rootId: root.id };
    writeFileSync(path.join(home.work, "stolen.json"), JSON.stringify(stolen));
    writeFileSync(path.join(home.work, "person.ts"), readFileSync(PERSON));
    const person = spawnAsPerson(client, root.id);
    const sessions = await watched(client, root.id).finally(() => person.stop());
    await checkTold(client, sessions);
    assertHas(person.codes, ["limit_children", "limit_sessions"]);
    checkSpend(await get(client, root.id));
    checkStolen(home);
    await checkEmpty(client, root.id);
    const { left } = await client.cancel({ id: root.id });
    assert.deepEqual(left, []);
  } finally {
    await home.close();
  }
}

/** Polls the tree until no session in it can continue, and checks the limits each time. */
async function watched(client: Client, rootId: string): Promise<Session[]> {
  return eventually(
    "the runaway family has run out of its budget",
    async () => {
      const { sessions } = await client.tree({ id: rootId });
      checkPlaces(sessions);
      const isStuck = sessions.every((each) => each.status !== "running" && isHeld(each));
      return isStuck && sessions.some((each) => each.waiting?.on === "budget") ? sessions : null;
    },
    120_000,
  );
}

function isHeld(session: Session): boolean {
  const on = session.waiting?.on;
  return on === undefined || on === "budget" || on === "children";
}

function checkPlaces(sessions: readonly Session[]): void {
  const open = sessions.filter(isOpen);
  assert.ok(open.length <= LIMITS.sessionsMax, `${open.length} sessions at work`);
  assert.ok(sessions.length - 1 <= LIMITS.spawnsMax, `${sessions.length - 1} spawns`);
  assert.ok(sessions.every((each) => each.depth <= LIMITS.depthMax));
  for (const [parentId, children] of Map.groupBy(open, (each) => each.parentId)) {
    if (parentId === null) continue;
    assert.ok(children.length <= LIMITS.childrenMax, `${children.length} children of ${parentId} at work`);
  }
  const minute = Date.now() - 60_000;
  const recent = sessions.filter((each) => each.parentId !== null && each.createdAt > minute);
  assert.ok(recent.length <= LIMITS.spawnsPerMinuteMax, `${recent.length} spawns in a minute`);
}

/**
 * Whether a session counts against the limits. Only its first round counts: a callback may open later rounds,
 * and the limits do not apply to callbacks.
 */
function isOpen(session: Session): boolean {
  return session.round === 1 && (session.status === "running" || session.status === "waiting");
}

/** Checks that every refusal names the limit and what to do instead. */
async function checkTold(client: Client, sessions: readonly Session[]): Promise<void> {
  const refusals: string[] = [];
  for (const { id } of sessions) {
    for (const tool of ["spawn_session", "subagent"]) {
      const replies = await toolReplies(client, id, tool);
      refusals.push(...replies.filter((each) => each.isError).map((each) => each.text));
    }
  }
  for (const { id } of sessions) {
    const told = await toolReplies(client, id, "tell_child");
    refusals.push(
      ...told.filter((each) => each.isError && each.text.includes("limit_")).map((each) => each.text),
    );
  }
  for (const refusal of refusals) {
    assert.match(refusal, /(limit_\w+|over_budget): .*\. (Do|Wait|Go on|Use|Ask) /);
  }
  const codes = refusals.map((each) => /(limit_\w+|over_budget): /.exec(each)![1]!);
  assertHas(codes, ["limit_depth", "limit_children"]);
  const stopped = sessions.filter((each) => each.outcomeReason?.startsWith("it reached its limit of $"));
  assert.ok(stopped.length > 0, "somebody was stopped in its turn");
  for (const { outcomeReason } of stopped) {
    assert.match(outcomeReason ?? "", /^it reached its limit of \$1\.20 \(spent \$\d\.\d\d/);
  }
}

/** Checks that the family exceeds its budget by at most one model call for each session that was running. */
function checkSpend(root: Session): void {
  const spent = root.treeUsage.usd ?? 0;
  assert.ok(spent >= BUDGET_USD - CALL_USD, `only $${spent} was spent`);
  assert.ok(spent <= BUDGET_USD + CALL_USD * LIMITS.sessionsMax, `$${spent} was spent`);
}

/** Cancels the children, so that none counts as open. Then budget or rate must still refuse a spawn. */
async function checkEmpty(client: Client, rootId: string): Promise<void> {
  const { sessions } = await client.children({ id: rootId });
  for (const { id } of sessions) await client.cancel({ id });
  const spawned = client.spawn({ id: rootId, agent: "runaway", prompt: "run away" });
  await assert.rejects(spawned, (error: Refusal) => ["over_budget", "limit_rate"].includes(error.code));
}

/** Checks that an agent cannot use a person's token. */
function checkStolen(home: TestHome): void {
  const file = path.join(home.work, "stolen-answers.txt");
  if (process.platform !== "linux") return;
  assert.ok(existsSync(file), "the route was tried");
  const answers = readFileSync(file, "utf8").trim().split("\n");
  assert.deepEqual(new Set(answers), new Set(["caller_is_agent"]));
}

async function get(client: Client, id: string): Promise<Session> {
  return (await client.get({ id })).session;
}

function assertHas(codes: readonly string[], wanted: readonly string[]): void {
  for (const code of wanted)
    assert.ok(codes.includes(code), `${code} is among ${[...new Set(codes)].join(", ")}`);
}

/**
 * Plays a person's runaway script: spawns under every session of the tree at the same time, over plain HTTP.
 */
function spawnAsPerson(client: Client, rootId: string): { codes: string[]; stop(): Promise<void> } {
  const codes: string[] = [];
  let isStopped = false;
  const loop = async (): Promise<void> => {
    while (!isStopped) {
      const { sessions } = await client.tree({ id: rootId });
      for (const { id } of sessions) {
        await client.spawn({ id, agent: "runaway", prompt: "run away" }).catch((error: unknown) => {
          if (!(error instanceof Refusal)) throw error;
          codes.push(error.code);
        });
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const done = loop();
  return {
    codes,
    async stop() {
      isStopped = true;
      await done;
    },
  };
}
