import assert from "node:assert/strict";
import { it, type TestContext } from "node:test";
import { Config } from "../contract/index.ts";
import { silentLog } from "../log.ts";
import type { EngineDeps } from "./deps.ts";
import { startFake } from "./fake-daemon.spec.ts";
import { Retention } from "./retention.ts";

async function setUp(t: TestContext, config: object) {
  const fake = await startFake(t);
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
  };
  const retention = new Retention(deps);
  return {
    ...fake,
    start,
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

it("by size, the oldest sessions of a scope lose theirs until the rest fits, and other scopes nothing", async (t) => {
  const world = await setUp(t, { scopes: { small: { keep: { megabytes: 0.0003 } } } });
  const first = await world.start("first", 4, "small");
  const second = await world.start("second", 1, "small");
  const other = await world.start("other", 4);
  await world.pass();
  const left = async (id: string) => (await world.client.entries({ id })).entries.length;
  assert.equal(await left(first), 0);
  assert.ok((await left(second)) > 0);
  assert.ok((await left(other)) > 0);
});

it("without a limit nothing is removed and nothing runs", async (t) => {
  const world = await setUp(t, {});
  const id = await world.start("kept", 2);
  world.later(10_000);
  await world.pass();
  assert.equal((await world.client.entries({ id })).keptFrom, 0);
});
