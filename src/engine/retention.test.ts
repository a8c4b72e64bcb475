import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import path from "node:path";
import { it, type TestContext } from "node:test";
import { Config } from "../contract/index.ts";
import { silentLog } from "../log.ts";
import type { EngineDeps } from "./deps.ts";
import { startFake } from "./testing/fake-daemon.ts";
import { Retention } from "./retention.ts";

async function setUp(t: TestContext, config: object) {
  const fake = await startFake(t, { config: { limits: { entryCharsMax: 1_000 } } });
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
    rolloutFolder: "",
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
  const world = await setUp(t, {});
  const id = await world.start("kept", 2);
  world.later(10_000);
  await world.pass();
  assert.equal((await world.client.entries({ id })).keptFrom, 0);
});
