import { connect } from "../src/client/index.ts";
import { startDaemon } from "../src/daemon.ts";
import { createFakeDriver } from "../src/drivers/fake/driver.ts";
import { silentLog } from "../src/log.ts";
import { benchConfig, inHome } from "./home.ts";
import { atMost, type Measurement } from "./measurement.ts";
import { percentile } from "./sample.ts";

const FAMILIES = 80;
const CHILDREN = 8;

/** From the commit that settles a child until its idle parent's agent has the callback. */
export const settleToStart: Measurement = {
  name: "settle-to-start",
  run: () =>
    inHome(async (paths) => {
      const watch = { parent: "", settledAt: 0, begun: Promise.withResolvers<number>() };
      const fake = createFakeDriver({
        gate: ({ at, sessionId }) => {
          if (at === "begin" && sessionId === watch.parent) watch.begun.resolve(performance.now());
        },
      });
      const daemon = await startDaemon({
        paths,
        config: benchConfig(),
        log: silentLog,
        drivers: new Map([["fake", fake]]),
        reached: (moment) => {
          if (moment === "settle.committed") watch.settledAt = performance.now();
        },
      });
      const taken: number[] = [];
      try {
        const client = connect({ url: daemon.url, token: daemon.token });
        for (let family = 0; family < FAMILIES; family++) {
          const { session } = await client.create({ prompt: "sim> say ready", agent: "fake" });
          await client.waitFor(session.id);
          for (let child = 0; child < CHILDREN; child++) {
            watch.parent = session.id;
            watch.begun = Promise.withResolvers<number>();
            await client.spawn({ id: session.id, prompt: "sim> say done", agent: "fake" });
            const begunAt = await watch.begun.promise;
            taken.push(begunAt - watch.settledAt);
            await client.waitFor(session.id);
          }
        }
      } finally {
        await daemon.stop();
      }
      const what = "child settled → parent's turn";
      const note = `${taken.length} callbacks, until the agent has the prompt`;
      const measured = taken.slice(CHILDREN * 5);
      return [
        { what: `${what}, p50`, value: percentile(measured, 50), unit: "ms", goal: atMost(3), note },
        { what: `${what}, p99`, value: percentile(measured, 99), unit: "ms", goal: atMost(15), note },
      ];
    }),
};
