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
  readonly wrap?: (driver: Driver) => Driver;
  readonly home?: string;
  readonly driver?: Driver;
  readonly place?: UserHome;
}

/**
 * Starts the whole daemon on a real database file, with in-process agents that a test can hold at a point.
 */
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

/** Replaces the wall clock by one that a test can advance. Must be called before the daemon starts. */
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

/** Returns a function that waits until `ask` returns a value. It asks after every commit, until a timeout. */
function whenOf(store: Store) {
  return async <T>(ask: () => Promise<T | null | undefined | false>): Promise<T> => {
    // Tests may move the other clocks, but `process.uptime` always shows real time.
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

/** Timeout on an idle machine; a slow machine gets proportionally more. */
const NEVER_S = 60;
const LOOK_MS = 1_000;

/** Returns a function that waits until a session's round is closed, and resolves to the session. */
function quietOf(store: Store) {
  const when = whenOf(store);
  return (id: string): Promise<SessionRecord> =>
    when(async () => {
      const session = await store.read.sessions.byId(id);
      return session !== null && !session.roundOpen && session;
    });
}

/** Holds a fake agent at a point: `reached` resolves when it is there, `open` lets it continue. */
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

/** Wraps a driver so that some methods of its handles are replaced. */
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

/**
 * Makes the store refuse writes, as on a full disk, while `isFull` returns true. `refused` resolves at the
 * first refusal, `refusedAgain` after so many more.
 */
export function fillDisk(store: Store, isFull: () => boolean) {
  const first = Promise.withResolvers<void>();
  let heard = first.resolve;
  breakWrites(store, () => {
    if (!isFull()) return null;
    heard();
    return new Refusal("disk_full", "The disk is full; nothing was changed.");
  });
  return {
    refused: first.promise,
    async refusedAgain(times: number): Promise<void> {
      for (let left = times; left > 0; left -= 1) {
        const next = Promise.withResolvers<void>();
        heard = next.resolve;
        await next.promise;
      }
    },
  };
}

/** Makes a write fail whenever `errorOf` returns an error. */
export function breakWrites(store: Store, errorOf: () => Error | null): void {
  aroundWrites(store, async (_, work, write) => {
    const error = errorOf();
    if (error !== null) throw error;
    return write(work);
  });
}

/** Waits for `count` whole beats of the heartbeat. Each beat reads once who works in the background. */
export async function beats(store: Store, count: number): Promise<void> {
  const { sessions } = store.read;
  const { inBackground } = sessions;
  const over = Promise.withResolvers<void>();
  let begun = 0;
  Object.assign(sessions, {
    inBackground(node: string) {
      begun += 1;
      // Beats do not overlap, and the first one seen may have begun before this call.
      if (begun > count + 1) over.resolve();
      return inBackground(node);
    },
  });
  await over.promise;
  Object.assign(sessions, { inBackground });
}
