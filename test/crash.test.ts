import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { testPostgres } from "../src/store/testing/test-postgres.ts";
import { crashCase, type CrashRow, type Sessions } from "./support/crash.ts";
import { type Client, eventually, type TestHome } from "./support/daemon.ts";
import { callbacksTo } from "./support/family.ts";
import { gate, openGate } from "./support/script.ts";

const spawnKid = (prompt: string): string =>
  `sim> tool spawn_session ${JSON.stringify({ name: "kid", prompt })} as kid`;
const KID = "sim> think hm\nsim> sleep 50\nsim> say kid done";
const FAMILY = `${spawnKid(KID)}\nsim> say started`;
const WAITING = `${spawnKid(KID)}\nsim> tool wait_session {"ids":["\${kid.session_id}"]}\nsim> say waited`;
const LONG = `sim> ${gate("on")}\nsim> say root done`;

async function toldOnce(client: Client, sessions: Sessions): Promise<void> {
  assert.equal(sessions.length, 2, "the child exists once");
  const ends = sessions.map((each) => `${each.status} ${each.outcome}`);
  assert.deepEqual(ends, ["idle completed", "idle completed"]);
  const told = await callbacksTo(client, sessions[0]!.id);
  assert.equal(told.length, 1, "the parent was told once");
  assert.match(told[0]!.text, /Child "kid" .* completed/);
  assert.match(told[0]!.text, /kid done/);
}

/** Checks that the result arrived in the reply of the wait or in a callback, and not in both. */
async function toldByWait(client: Client, sessions: Sessions): Promise<void> {
  assert.equal(sessions.length, 2, "the child exists once");
  assert.ok(sessions.every((each) => each.outcome === "completed"));
  const { messages } = await client.inbox({ id: sessions[0]!.id, all: true });
  const callback = messages.find((message) => message.kind === "callback")!;
  assert.equal(callback.status, "landed");
  const turns = await callbacksTo(client, sessions[0]!.id);
  assert.equal(turns.length, callback.carrier === "tool" ? 0 : 1);
}

/** Steers a message into the turn, which goes on when the daemon is dead. */
async function tellUntilDeath(client: Client, id: string, home: TestHome): Promise<void> {
  // The daemon may die during the call.
  await tellWhenRunning(client, id).catch((error: unknown) => error);
  await home.ended();
  openGate(home.work, "on");
}

/** Steers a message into the turn, which goes on when the agent has received it. */
async function tellUntilReceived(client: Client, id: string, home: TestHome): Promise<void> {
  await tellWhenRunning(client, id);
  await eventually("the agent has it", async () => journalsOf(home).includes('"steered":true'));
  openGate(home.work, "on");
}

function journalsOf(home: TestHome): string {
  const folder = path.join(home.home, "sim");
  const names = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  return names.map((name) => readFileSync(path.join(folder, name), "utf8")).join("");
}

async function tellWhenRunning(client: Client, id: string): Promise<void> {
  await eventually("the root runs", async () => {
    const { session } = await client.get({ id });
    return session.agentSessionId !== null && session.status === "running";
  });
  await client.tell({ id, message: "sim> say steered" });
}

async function steeredOnce(client: Client, sessions: Sessions): Promise<void> {
  const [root] = sessions;
  assert.equal(root!.outcome, "completed");
  const { messages } = await client.inbox({ id: root!.id, all: true });
  const tells = messages.filter((message) => message.kind === "tell");
  assert.deepEqual(
    tells.map((message) => message.status),
    ["landed"],
  );
  const { entries } = await client.entries({ id: root!.id, limit: 500 });
  const said = entries.filter((entry) => entry.author === "agent" && entry.body.text === "steered");
  assert.equal(said.length, 1, "the steered work was done once");
}

async function cancelWhenRunning(client: Client, id: string): Promise<void> {
  await eventually("the child runs", async () => {
    const { sessions } = await client.tree({ id });
    return sessions.find((each) => each.name === "kid")?.status === "running";
  });
  await client.cancel({ id, reason: "wrong branch" });
}

async function allCancelled(client: Client, sessions: Sessions): Promise<void> {
  assert.ok(sessions.every((each) => each.status === "ended" && each.outcome === "cancelled"));
  for (const { id } of sessions) {
    const { turns } = await client.turns({ id });
    assert.ok(turns.every((turn) => turn.status !== "running"));
  }
}

async function steerAfterFailure(client: Client, sessions: Sessions): Promise<void> {
  const [root] = sessions;
  assert.equal(root!.outcome, "failed");
  const { messages } = await client.inbox({ id: root!.id, all: true });
  assert.equal(messages.find((message) => message.kind === "tell")?.status, "landed");
}

const row = (
  moment: CrashRow["moment"],
  count: number,
  what: string,
  more: Partial<CrashRow> = {},
): CrashRow => ({ moment, count, what, prompt: FAMILY, check: toldOnce, ...more });

const waits = { prompt: WAITING, check: toldByWait };
const steers = { prompt: LONG, meanwhile: tellUntilDeath, check: steeredOnce };
const crashes = {
  prompt: `sim> ${gate("on")}\nsim> crash`,
  meanwhile: tellUntilReceived,
  check: steerAfterFailure,
};
const cancels = {
  prompt: `${spawnKid("sim> sleep 60000")}\nsim> hang`,
  meanwhile: cancelWhenRunning,
  check: allCancelled,
};

const TABLE: readonly CrashRow[] = [
  row("spawn.parsed", 1, "step 1: the tool call has arrived"),
  row("spawn.decided", 1, "step 2: it is decided what the child may do"),
  row("spawn.committed", 1, "steps 3 and 4: the child is durable, nobody was answered"),
  row("turn.claimed", 2, "steps 5 and 6: the child's turn is claimed, its message taken"),
  row("agent.started", 2, "step 7: the child's agent runs, its own id is not stored"),
  row("agent.identified", 2, "step 7: the child's agent is known, nothing was sent"),
  row("prompt.sent", 2, "step 8: the child's prompt is on its way"),
  row("entries.appended", 1, "step 8: some work is stored"),
  row("outcome.received", 1, "step 9: an outcome is known and not stored"),
  row("outcome.received", 2, "step 9: the second outcome is known and not stored"),
  row("settle.committed", 1, "step 10: settled, nobody woken"),
  row("settle.committed", 2, "step 10: settled with the callback, nobody woken"),
  row("turn.claimed", 3, "step 11: the parent has taken the callback"),
  row("prompt.sent", 3, "step 11: the callback is on its way to the parent"),
  row("wait.taken", 1, "queued to taken by a tool: the reply was not sent", waits),
  row("settle.committed", 2, "taken to landed by a tool's result", waits),
  row("steer.taken", 1, "queued to taken by a steer: not a byte was sent", steers),
  row("steer.sent", 1, "a steer was acknowledged and has not landed", steers),
  // The agent died after it received the message, as its journal shows. Recovery and the settle must both
  // count the message as landed.
  row("outcome.received", 1, "taken to landed: the agent died with a steer, not yet settled", crashes),
  row("settle.committed", 1, "taken to landed: the agent died with a steer, settled", crashes),
  row("cancel.committed", 1, "queued to void: the tombstone is written, nothing is stopped", cancels),
  row("prompt.sent", 2, "dies again when the turn was taken over", {
    again: { moment: "resume.claimed", count: 1 },
  }),
  row("prompt.sent", 2, "dies again when the conversation was loaded", {
    again: { moment: "resume.loaded", count: 1 },
  }),
];

describe("killed with SIGKILL on SQLite", { concurrency: 3 }, () => {
  for (const each of TABLE) {
    test(`at ${each.moment} (${each.count}), ${each.what}: nothing lost, nothing twice`, () =>
      crashCase({}, each));
  }
});

describe("killed with SIGKILL on PostgreSQL", { concurrency: 3 }, () => {
  let postgres: Awaited<ReturnType<typeof testPostgres>>;
  before(async () => {
    postgres = await testPostgres();
  });
  after(() => postgres.stop());
  for (const each of TABLE) {
    test(`at ${each.moment} (${each.count}), ${each.what}: nothing lost, nothing twice`, async () =>
      crashCase({ store: await postgres.url() }, each));
  }
});
