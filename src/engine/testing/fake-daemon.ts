import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { TestContext } from "node:test";
import { slowness } from "../../../scripts/slowness.ts";
import { connect } from "../../client/index.ts";
import { pathsIn } from "../../config/index.ts";
import { Config, Refusal } from "../../contract/index.ts";
import { startDaemon } from "../../daemon.ts";
import { createFakeDriver, type FakeOptions, type FakePoint } from "../../drivers/fake/driver.ts";
import type { AgentHandle, Driver } from "../../drivers/port.ts";
import type { UserHome } from "../../history/port.ts";
import type { Moment } from "../../kernel/deps.ts";
import { silentLog } from "../../log.ts";
import { aroundWrites } from "../../store/testing/around-writes.ts";
import type { SessionRecord, Store } from "../../store/port/store.ts";

export interface FakeSetup extends FakeOptions {
  readonly config?: Record<string, unknown>;
  readonly reached?: (moment: Moment) => void;
  /** Changes the driver before the daemon sees it. */
  readonly wrap?: (driver: Driver) => Driver;
  readonly home?: string;
  readonly driver?: Driver;
  readonly place?: UserHome;
}

/** The whole daemon on a real file, with agents inside this process that a test can hold up. */
export async function startFake(t: TestContext, setup: FakeSetup = {}) {
  const home = setup.home ?? mkdtempSync(path.join(tmpdir(), "kinfold-fake-"));
  const driver = setup.driver ?? createFakeDriver(setup);
  const daemon = await startDaemon({
    paths: pathsIn(home),
    config: Config.parse({ port: 0, agent: driver.name, ...setup.config }),
    log: silentLog,
    drivers: new Map([[driver.name, setup.wrap?.(driver) ?? driver]]),
    ...(setup.place === undefined ? {} : { place: setup.place }),
    ...(setup.reached === undefined ? {} : { reached: setup.reached }),
  });
  let isDown = false;
  const stop = async (): Promise<void> => {
    if (!isDown) await daemon.stop();
    isDown = true;
  };
  t.after(async () => {
    await stop();
    rmSync(home, { recursive: true, force: true });
  });
  const client = connect({ url: daemon.url, token: daemon.token });
  const { store } = daemon;
  return { home, driver, client, store, stop, when: whenOf(store), quiet: quietOf(store) };
}

/** The wall clock, which a test can put forward. To be taken before the daemon starts. */
export function movableClock(t: TestContext): { add(ms: number): void } {
  const real = Date.now.bind(Date);
  let aheadMs = 0;
  t.mock.method(Date, "now", () => real() + aheadMs);
  return {
    add(ms) {
      aheadMs += ms;
    },
  };
}

/** Asks after every commit until it is so; fails where that never happens. */
function whenOf(store: Store) {
  return async <T>(ask: () => Promise<T | null | undefined | false>): Promise<T> => {
    // Not one of the clocks that a test may put forward.
    const from = process.uptime();
    for (;;) {
      const changed = Promise.withResolvers<void>();
      const off = store.onCommit(() => changed.resolve());
      const answer = await ask();
      if (answer !== null && answer !== undefined && answer !== false) {
        off();
        return answer;
      }
      await Promise.race([changed.promise, pause(LOOK_MS, undefined, { ref: false })]);
      off();
      const passed = process.uptime() - from;
      if (passed > NEVER_S && passed > NEVER_S * slowness()) throw new Error(`never came true: ${ask}`);
    }
  };
}

/** What does not come true on a quiet machine in this time will never: the test says so and ends. */
const NEVER_S = 60;
const LOOK_MS = 1_000;

/** Resolves to the session when its round is closed. */
function quietOf(store: Store) {
  const when = whenOf(store);
  return (id: string): Promise<SessionRecord> =>
    when(async () => {
      const session = await store.read.sessions.byId(id);
      return session !== null && !session.roundOpen && session;
    });
}

/** Holds a fake agent at a point: `reached` says that it is there, `open` lets it go on. */
export function holdAt(at: FakePoint["at"], isWanted: (point: FakePoint) => boolean = () => true) {
  const reached = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  let isOpen = false;
  return {
    reached: reached.promise,
    open(): void {
      isOpen = true;
      held.resolve();
    },
    async gate(point: FakePoint): Promise<void> {
      if (isOpen || point.at !== at || !isWanted(point)) return;
      reached.resolve();
      await held.promise;
    },
  };
}

/** A driver whose handles do some things in another way. */
export function withHandles(
  change: (handle: AgentHandle) => Partial<AgentHandle>,
): (driver: Driver) => Driver {
  return (driver) => ({
    ...driver,
    async open(request) {
      const result = await driver.open(request);
      if (!result.ok) return result;
      const changes = change(result.handle);
      const handle = new Proxy(result.handle, {
        get(target, name) {
          const value: unknown = Reflect.get(Object.hasOwn(changes, name) ? changes : target, name);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
      return { ok: true, handle };
    },
  });
}

/** Makes the store refuse writes, as on a full disk, while `isFull` says so. `refused`: it has done so. */
export function fillDisk(store: Store, isFull: () => boolean): { refused: Promise<void> } {
  const first = Promise.withResolvers<void>();
  breakWrites(store, () => {
    if (!isFull()) return null;
    first.resolve();
    return new Refusal("disk_full", "The disk is full; nothing was changed.");
  });
  return { refused: first.promise };
}

/** Every write fails for which there is an error. */
export function breakWrites(store: Store, errorOf: () => Error | null): void {
  aroundWrites(store, async (_, work, write) => {
    const error = errorOf();
    if (error !== null) throw error;
    return write(work);
  });
}

/** So many beats of the daemon's own clock: what it does every second it has done by then. */
export async function ticks(count: number): Promise<void> {
  await pause(count * 1_000 + 200);
}
