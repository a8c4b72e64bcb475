import type { TestContext } from "node:test";
import { Config } from "../../contract/index.ts";
import { createFakeDriver, type FakeOptions } from "../../drivers/fake/driver.ts";
import type { Driver } from "../../drivers/port.ts";
import { type Family, openFamily } from "../../kernel/testing/family.ts";
import { silentLog } from "../../log.ts";
import type { SessionRecord, TurnRecord } from "../../store/port/store.ts";
import type { EngineDeps } from "../deps.ts";
import { Runner } from "../runner.ts";

/** Makes an engine over a store that a test fills, for example with the rows that a dead daemon left. */
export async function openEngine(t: TestContext, options: FakeOptions = {}) {
  const family = await openFamily(t);
  const fake = createFakeDriver({ name: "sim", ...options });
  /** Ids of the sessions for which an agent was opened. */
  const opened: string[] = [];
  const driver: Driver = {
    ...fake,
    open(request) {
      opened.push(request.sessionId);
      return fake.open(request);
    },
  };
  const deps: EngineDeps = {
    store: family.store,
    config: Config.parse({}),
    log: silentLog,
    now: Date.now,
    reached: () => undefined,
    drivers: new Map([["sim", driver]]),
    reaper: { reap: async () => ({ killed: [], left: [] }) },
    toolsUrl: () => null,
    rolloutPath: ({ id }) => id,
    rolloutFolder: "",
    messageFolder: "",
    privateFolders: [],
    usageFiles: { covers: () => false, total: async () => null, forget: () => undefined },
  };
  const runner = new Runner(deps, [await driver.probe()]);
  t.after(() => runner.stop());
  return { family, deps, runner, opened };
}

/** Adds a session whose turn was running when its daemon died. */
export async function cutTurn(
  family: Family,
  session: Partial<SessionRecord> = {},
  turn: Partial<TurnRecord> = {},
): Promise<{ id: string; turn: TurnRecord }> {
  const { id } = await family.add(family.rootId, { fence: 1, ...session });
  return { id, turn: await family.startTurn(id, turn) };
}

/** Waits until the turn has settled; checks after every commit. */
export async function settledTurn(family: Family, { id }: TurnRecord): Promise<TurnRecord> {
  for (;;) {
    const changed = Promise.withResolvers<void>();
    const off = family.store.onCommit(() => changed.resolve());
    const turn = await family.store.read.turns.byId(id);
    if (turn !== null && turn.status !== "running") {
      off();
      return turn;
    }
    await changed.promise;
    off();
  }
}
