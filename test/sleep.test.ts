import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Event } from "../src/contract/index.ts";
import { testPostgres } from "../src/store/testing/test-postgres.ts";
import { randomFrom } from "../src/testing/seeds.ts";
import { sendSignal } from "../src/system/proc.ts";
import { type Client, eventually, TestHome } from "./support/daemon.ts";
import { allQuiet, callbacksTo, checkInvariants, quiet } from "./support/family.ts";
import { FeedReader } from "./support/feed-reader.ts";
import { leasesRunning, type Marked, simsOf } from "./support/processes.ts";
import { gate, openGate, script } from "./support/script.ts";

const BACKGROUND_MS = 10_000;

describe("sleep", { concurrency: true }, () => {
  test("on the embedded store no deadline passes and no lease is lost while the machine sleeps", async () => {
    const home = new TestHome({ env: { KINFOLD_BACKGROUND_MS: String(BACKGROUND_MS) } });
    const feed = await openFeed(home);
    try {
      const client = home.client();
      const { parent, child } = await family(client, home, ["kid"]);
      const prompt = script("background 600000", "say it goes on");
      const { session: busy } = await client.create({ cwd: home.work, prompt });
      await eventually("its turn has ended and its work goes on", async () => {
        const { turns } = await client.turns({ id: busy.id });
        return turns[0]?.status === "completed";
      });
      const before = simsOf(home.agents());
      assert.equal((await client.get({ id: busy.id })).session.status, "running");
      const slept = await sleepFor(home, BACKGROUND_MS + 4_000);

      const notice = await eventually("the sleep is told", async () => noticeIn(feed.events, busy.id));
      const [, told] = /^slept (\d+) s; no deadline passed meanwhile$/.exec(notice.text ?? "") ?? [];
      assert.ok(Number(told) >= 13 && Number(told) <= slept / 1_000 + 1, `${notice.text}, in ${slept} ms`);
      assert.ok(noticeIn(feed.events, parent) !== null, "in every tree that was at work");
      assert.deepEqual(simsOf(home.agents()), before, "every agent runs on under its lease");
      openGate(home.work, "kid");
      assert.equal((await quiet(client, child[0]!)).outcome, "completed");
      const [turn] = (await client.turns({ id: child[0]! })).turns;
      assert.deepEqual([turn?.status, turn?.attempt], ["completed", 1]);

      const closed = await eventually("the background work's time is over", async () =>
        feed.events.find((event) => event.type === "round.closed" && event.sessionId === busy.id),
      );
      const settled = feed.events.find(
        (event) => event.type === "turn.settled" && event.sessionId === busy.id,
      )!;
      const sleptMs = Number(notice.data["sleptMs"]);
      assert.ok(notice.seq < closed.seq, "nothing was over when the machine woke");
      assert.ok(closed.at - settled.at >= BACKGROUND_MS + sleptMs, "the time asleep did not count");
      await allQuiet(client, parent);
      await toldOnce(client, parent, ["kid"]);
    } finally {
      await feed.close();
      await home.close();
    }
  });

  test("on a server the lease is lost by its clock: the turns are taken up again, and each callback comes once", async () => {
    const server = await testPostgres();
    const home = new TestHome({ store: await server.url() });
    const feed = await openFeed(home);
    try {
      const client = home.client();
      const names = ["one", "two", "three"];
      const { parent, child } = await family(client, home, names);
      const before = home.agents();
      await sleepFor(home, 37_000);

      await eventually("the sleep is told", async () => noticeIn(feed.events, parent));
      const leases = new Set(before.map((each) => each.lease));
      const after = await eventually("they are at the gate again, under other leases", async () => {
        const marked = home.agents().filter((each) => !leases.has(each.lease));
        return atGate(marked).size === names.length ? marked : null;
      });
      assert.equal(simsOf(after).length, names.length, "none runs twice");
      assert.deepEqual(
        home.agents().filter((each) => leases.has(each.lease)),
        [],
        "none of before is left",
      );
      for (const name of names) openGate(home.work, name);
      await allQuiet(client, parent);
      for (const id of child) {
        const [turn, ...more] = (await client.turns({ id })).turns;
        assert.deepEqual([turn?.status, turn?.attempt, more.length], ["completed", 2, 0]);
      }
      await toldOnce(client, parent, names);
    } finally {
      await feed.close();
      await home.close();
      await server.stop();
    }
  });
});

async function openFeed(home: TestHome): Promise<FeedReader> {
  await home.start();
  const feed = new FeedReader(home, { chance: randomFrom(1), cutsMax: 0 });
  await eventually("the feed is open", async () => feed.firstCursor);
  return feed;
}

/** Starts an idle parent with children, each of which waits at a gate. */
async function family(
  client: Client,
  home: TestHome,
  names: readonly string[],
): Promise<{ parent: string; child: string[] }> {
  const { session: parent } = await client.create({ cwd: home.work, prompt: script("say ready") });
  await quiet(client, parent.id);
  const child: string[] = [];
  for (const name of names) {
    const prompt = script("say here", gate(name), `say ${name} done`);
    child.push((await client.spawn({ id: parent.id, name, prompt })).session.id);
  }
  await eventually("all stand at their gates", async () => atGate(home.agents()).size === names.length);
  return { parent: parent.id, child };
}

function atGate(marked: readonly Marked[]): Set<string> {
  return leasesRunning(marked, "/bin/sh -c until");
}

/** Suspends the daemon and all its processes, as when the machine sleeps. Returns for how long. */
async function sleepFor(home: TestHome, sleepMs: number): Promise<number> {
  const since = performance.now();
  home.signal("SIGSTOP");
  const stopped = new Set<number>();
  try {
    // Repeats until it finds no new process, because a process that is not stopped yet may start another.
    for (let found = home.agents(); found.some(({ pid }) => !stopped.has(pid)); found = home.agents()) {
      for (const { pid } of found) if (sendSignal(pid, "SIGSTOP")) stopped.add(pid);
    }
    await pause(sleepMs);
  } finally {
    for (const pid of stopped) sendSignal(pid, "SIGCONT");
    home.signal("SIGCONT");
  }
  return performance.now() - since;
}

function noticeIn(events: readonly Event[], rootId: string): Event | null {
  const isOurs = (event: Event): boolean => event.type === "notice" && event.rootId === rootId;
  return events.find((event) => isOurs(event) && event.data["sleptMs"] !== undefined) ?? null;
}

async function toldOnce(client: Client, parent: string, names: readonly string[]): Promise<void> {
  await checkInvariants(client, parent);
  const told = await callbacksTo(client, parent);
  assert.equal(told.length, names.length);
  for (const name of names)
    assert.equal(told.filter((each) => each.text.includes(`Child "${name}"`)).length, 1);
}
