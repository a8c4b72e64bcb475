import { type Client, connect } from "../src/client/index.ts";
import { startDaemon } from "../src/daemon.ts";
import { createFakeDriver } from "../src/drivers/fake/driver.ts";
import { silentLog } from "../src/log.ts";
import { benchConfig, inHome } from "./home.ts";
import { atMost, type Measurement } from "./measurement.ts";
import { RawSqlite } from "./raw-sqlite.ts";
import { median, percentile, timeMs } from "./sample.ts";

const FAMILIES = 60;
const WARM = 5;
const CHILDREN = 8;

/** Measures the time from the commit that settles a child until its idle parent's agent gets the callback. */
export const settleToStart: Measurement = {
  name: "settle-to-start",
  run: () =>
    inHome(async (paths) => {
      const watch = new Watch();
      const daemon = await startDaemon({
        paths,
        config: benchConfig(),
        log: silentLog,
        drivers: new Map([["fake", createFakeDriver({ gate: (point) => watch.onPoint(point) })]]),
        reached: (moment) => {
          if (moment === "settle.committed") watch.settledAt = performance.now();
        },
      });
      const raw = new RawSqlite(paths);
      const taken: number[] = [];
      const bare: number[] = [];
      try {
        const client = connect({ url: daemon.url, token: daemon.token });
        for (let family = 0; family < WARM + FAMILIES; family++) {
          const latencies = await callbacks(client, watch);
          if (family < WARM) continue;
          taken.push(...latencies);
          bare.push(await timeMs(() => raw.commitOne()));
        }
      } finally {
        raw.close();
        await daemon.stop();
      }
      const what = "child settled → parent's turn";
      const note = `${taken.length} callbacks, until the agent has the prompt; a bare commit took ${median(bare).toFixed(2)} ms`;
      return [
        { what: `${what}, p50`, value: percentile(taken, 50), unit: "ms", goal: atMost(3), note },
        { what: `${what}, p99`, value: percentile(taken, 99), unit: "ms", goal: atMost(15), note },
      ];
    }),
};

class Watch {
  settledAt = 0;
  #parent = "";
  #begun = Promise.withResolvers<number>();

  onPoint(point: { at: string; sessionId: string }): void {
    if (point.at === "begin" && point.sessionId === this.#parent) this.#begun.resolve(performance.now());
  }

  /** Resolves to the time when the next prompt of this session reaches its agent. */
  nextPrompt(sessionId: string): Promise<number> {
    this.#parent = sessionId;
    this.#begun = Promise.withResolvers<number>();
    return this.#begun.promise;
  }
}

/** Runs children one after another under one idle parent and returns how long each callback took. */
async function callbacks(client: Client, watch: Watch): Promise<number[]> {
  const { session } = await client.create({ prompt: "sim> say ready", agent: "fake" });
  await client.waitFor(session.id);
  const taken: number[] = [];
  for (let child = 0; child < CHILDREN; child++) {
    const begun = watch.nextPrompt(session.id);
    await client.spawn({ id: session.id, prompt: "sim> say done", agent: "fake" });
    taken.push((await begun) - watch.settledAt);
    await client.waitFor(session.id);
  }
  return taken;
}
