import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { it, type TestContext } from "node:test";
import { pathsIn } from "../config/index.ts";
import { Config } from "../contract/index.ts";
import { silentLog } from "../log.ts";
import { restore } from "../store/restore/restore.ts";
import type { FakeOptions } from "../drivers/fake/driver.ts";
import type { EngineDeps } from "./deps.ts";
import { holdAt, startFake } from "./testing/fake-daemon.ts";
import { Retention } from "./retention.ts";
import { rolloutPoint } from "./rollout.ts";

async function setUp(t: TestContext, config: object, agents: FakeOptions = {}) {
  const fake = await startFake(t, { config: { limits: { entryCharsMax: 1_000 } }, ...agents });
  const start = async (name: string, prompts: number, scope = "default") => {
    const { session } = await fake.client.create({ name, prompt: `say ${name}`, scope });
    for (let at = 1; at < prompts; at += 1)
      await fake.client.prompt({ id: session.id, prompt: `more ${at}` });
    await fake.quiet(session.id);
    return session.id;
  };
  let aheadMs = 0;
  const deps: EngineDeps = {
    store: fake.store,
    config: Config.parse(config),
    log: silentLog,
    now: () => Date.now() + aheadMs,
    reached: () => undefined,
    drivers: new Map(),
    reaper: { reap: async () => ({ killed: [], left: [] }) },
    toolsUrl: () => null,
    rolloutPath: ({ id }) => id,
    rolloutFolder: pathsIn(fake.home).rollouts,
    messageFolder: path.join(fake.home, "messages"),
    privateFolders: [],
    usageFiles: { covers: () => false, total: async () => null, forget: () => undefined },
  };
  const retention = new Retention(deps);
  const say = async (id: string, times: number, text: string) => {
    const { rootId } = (await fake.store.read.sessions.byId(id))!;
    const entry = { turnId: null, author: "agent", kind: "text", isSubagent: false, at: Date.now() } as const;
    const entries = Array.from({ length: times }, () => ({ ...entry, body: { text } }));
    await fake.store.write(rootId, (tx) => tx.entries.append(id, entries));
  };
  return {
    ...fake,
    start,
    say,
    pass: () => retention.pass(),
    /** Resolves when all events so far are in the rollouts. */
    written: async () => {
      const { xmin } = await fake.store.feed.point();
      await fake.when(async () => (await rolloutPoint(deps)) >= xmin);
    },
    later: (days: number) => {
      aheadMs += days * 86_400_000;
    },
  };
}

it("by age, older entries are removed; turns, results and receipts stay, and the transcript says so", async (t) => {
  const world = await setUp(t, { keep: { days: 30 } });
  const id = await world.start("old", 3);
  const before = await world.client.entries({ id });
  await world.pass();
  assert.equal((await world.client.entries({ id })).entries.length, before.total, "it is young yet");
  world.later(31);
  await world.pass();
  const { entries, total, keptFrom } = await world.client.entries({ id });
  assert.deepEqual([entries, total, keptFrom], [[], before.total, before.total]);
  assert.match((await world.client.transcript({ id })).text, /earlier entries were removed/);
  const { turns } = await world.client.turns({ id });
  assert.equal(turns.length, 3);
  assert.ok(turns.every((turn) => turn.lastAssistantMessage !== null && turn.receipt !== null));
});

it("by size, the session longest idle loses its oldest entries, no more than needed, and other scopes nothing", async (t) => {
  const world = await setUp(t, { scopes: { small: { keep: { megabytes: 0.05 } } } });
  const first = await world.start("first", 1, "small");
  const second = await world.start("second", 1, "small");
  const other = await world.start("other", 1);
  for (const id of [first, second, other]) await world.say(id, 150, "x".repeat(300));
  await world.client.prompt({ id: first, prompt: "more" });
  await world.quiet(first);
  const kept = async (id: string) => {
    const { keptFrom, total } = await world.client.entries({ id });
    return { from: keptFrom, count: total - keptFrom };
  };
  const before = await kept(first);
  await world.pass();
  assert.deepEqual(await kept(first), before, "it was at work last");
  assert.equal((await kept(other)).from, 0);
  const { count } = await kept(second);
  assert.ok(count > 0 && count < 150, `${count} are left`);
  await world.pass();
  assert.equal((await kept(second)).count, count, "the rest fits");
});

it("the file with the rest of a long message is removed with the entries of its turn", async (t) => {
  const world = await setUp(t, { keep: { days: 30 } });
  const { session } = await world.client.create({ name: "long", prompt: `sim> say ${"word ".repeat(500)}` });
  await world.quiet(session.id);
  const folder = path.join(world.home, "messages", session.id);
  assert.equal(readdirSync(folder).length, 1);
  await world.pass();
  assert.equal(readdirSync(folder).length, 1, "it is young yet");
  world.later(31);
  await world.pass();
  assert.deepEqual(readdirSync(folder), []);
});

it("what a child inherited stays when its other entries are removed, and its transcript says that they were", async (t) => {
  const world = await setUp(t, { keep: { days: 30 } });
  const parent = await world.start("parent", 2);
  const { session } = await world.client.spawn({ id: parent, name: "child", prompt: "say something" });
  await world.quiet(session.id);
  await world.quiet(parent);
  const look = async (view: "inherited" | "transcript") =>
    (await world.client.inspect({ id: session.id, view })).text;
  const inherited = await look("inherited");
  assert.match(inherited, /^## Inherited from Parent Session/);
  world.later(31);
  await world.pass();
  assert.equal(await look("inherited"), inherited);
  const { total } = await world.client.entries({ id: session.id });
  assert.match(await look("transcript"), new RegExp(`\n\n\\(${total - 1} earlier entries were removed`));
});

it("without a limit nothing is removed and nothing runs", async (t) => {
  const world = await setUp(t, { keep: { eventDays: null } });
  const id = await world.start("kept", 2);
  await world.written();
  world.later(10_000);
  const events = await world.store.feed.ofTree(id, 0, 1_000);
  await world.pass();
  assert.equal((await world.client.entries({ id })).keptFrom, 0);
  assert.deepEqual(await world.store.feed.ofTree(id, 0, 1_000), events);
});

it("a tree's events are removed 30 days after its last activity, and what happens then is numbered on", async (t) => {
  const world = await setUp(t, {});
  const id = await world.start("quiet", 3);
  await world.written();
  const before = await world.store.feed.ofTree(id, 0, 1_000);
  world.later(29);
  await world.pass();
  assert.deepEqual(await world.store.feed.ofTree(id, 0, 1_000), before, "it is young yet");
  world.later(2);
  await world.pass();
  assert.deepEqual(await world.store.feed.ofTree(id, 0, 1_000), []);
  assert.equal((await world.client.entries({ id })).keptFrom, 0, "its transcript stays");
  await world.client.prompt({ id, prompt: "more" });
  await world.quiet(id);
  const [next] = await world.store.feed.ofTree(id, 0, 1);
  assert.equal(next?.seq, before.length + 1);
});

it("a tree with an open round keeps its events, however old they are", async (t) => {
  const gate = holdAt("end");
  const world = await setUp(t, {}, { gate: gate.gate });
  const { session } = await world.client.create({ name: "at work", prompt: "say something" });
  await gate.reached;
  await world.written();
  world.later(400);
  const before = await world.store.feed.ofTree(session.id, 0, 1_000);
  assert.ok(before.length > 0);
  await world.pass();
  assert.deepEqual(await world.store.feed.ofTree(session.id, 0, before.length), before);
  gate.open();
  await world.quiet(session.id);
});

it("an event that is not in a rollout yet is kept", async (t) => {
  const world = await setUp(t, {});
  const id = await world.start("unwritten", 1);
  await world.written();
  const point = path.join(pathsIn(world.home).rollouts, ".point");
  const [first] = await world.store.feed.ofTree(id, 0, 1);
  writeFileSync(point, `${world.store.epoch}.${first!.xid}\n`);
  world.later(31);
  await world.pass();
  assert.equal((await world.store.feed.ofTree(id, 0, 1))[0]?.seq, 1);
});

it("a cursor whose events are gone is answered by a reset, and one that has them all goes on", async (t) => {
  const world = await setUp(t, {});
  const id = await world.start("followed", 1);
  const opening = async (options: { after?: string; tree?: string }) => {
    for await (const item of world.client.events(options)) return item;
    throw new Error("the feed ended without a word");
  };
  const { cursor: allEarly } = (await opening({})) as { cursor: string };
  const { cursor: oneEarly } = (await opening({ tree: id })) as { cursor: string };
  await world.client.prompt({ id, prompt: "more" });
  await world.quiet(id);
  await world.written();
  const { cursor: allLate } = (await opening({})) as { cursor: string };
  const { cursor: oneLate } = (await opening({ tree: id })) as { cursor: string };
  world.later(31);
  await world.pass();
  const second = await world.start("after", 1);
  const firstTypes = async (options: { after: string; tree?: string }, count: number) => {
    const types: string[] = [];
    for await (const item of world.client.events(options)) {
      types.push(item.type === "event" && item.event.rootId !== id ? "of the other tree" : item.type);
      if (types.length === count) break;
    }
    return types;
  };
  assert.deepEqual((await firstTypes({ after: allEarly }, 2)).toSorted(), ["open", "reset"]);
  assert.deepEqual((await firstTypes({ after: oneEarly, tree: id }, 2)).toSorted(), ["open", "reset"]);
  assert.deepEqual(await firstTypes({ after: allLate }, 2), ["open", "of the other tree"]);
  await world.client.prompt({ id, prompt: "again" });
  assert.deepEqual(await firstTypes({ after: oneLate, tree: id }, 2), ["open", "event"]);
  await world.quiet(id);
  await world.quiet(second);
});

it("a store whose events were pruned is restored from the rollouts with every entry", async (t) => {
  const world = await setUp(t, {});
  const id = await world.start("restored", 3);
  const { session: child } = await world.client.spawn({ id, name: "child", prompt: "say something" });
  await world.quiet(child.id);
  await world.quiet(id);
  await world.written();
  world.later(31);
  await world.pass();
  assert.deepEqual(await world.store.feed.ofTree(id, 0, 1_000), []);
  const said = async ({ client }: Pick<typeof world, "client">, of: string) =>
    (await client.entries({ id: of })).entries.map(({ kind, body }) => ({ kind, body }));
  const before = [await said(world, id), await said(world, child.id)];
  await world.stop();
  const { database, lock, rollouts } = pathsIn(world.home);
  const made = await restore(
    { database, lock, rollouts, node: "local", log: silentLog },
    { from: "rollouts" },
  );
  assert.deepEqual([made.sessions, made.unreadable], [2, []]);
  const again = await startFake(t, { home: world.home });
  assert.deepEqual([await said(again, id), await said(again, child.id)], before);
  await again.stop();
});
