import { connect } from "../src/client/index.ts";
import { startDaemon } from "../src/daemon.ts";
import { createFakeDriver } from "../src/drivers/fake/driver.ts";
import { silentLog } from "../src/log.ts";
import { benchConfig, inHome } from "./home.ts";
import type { Measurement } from "./measurement.ts";
import { median, timeMs } from "./sample.ts";

const ROUNDS = 5;
const SESSIONS = 8;
const EACH = 500;

/**
 * Measures how many entries are stored per second when several agents write a lot at once. The time runs
 * until every turn has settled.
 */
export const entries: Measurement = {
  name: "entries",
  run: () =>
    inHome(async (paths) => {
      const daemon = await startDaemon({
        paths,
        config: benchConfig(),
        log: silentLog,
        drivers: new Map([["fake", createFakeDriver()]]),
      });
      try {
        const client = connect({ url: daemon.url, token: daemon.token });
        const prompt = "sim> say something of the usual length for a line that an agent writes\n".repeat(
          EACH,
        );
        const taken: number[] = [];
        for (let round = 0; round < ROUNDS; round++) {
          const tookMs = await timeMs(() =>
            Promise.all(
              Array.from({ length: SESSIONS }, async () => {
                const { session } = await client.create({ prompt, agent: "fake" });
                await client.waitFor(session.id);
              }),
            ),
          );
          taken.push((SESSIONS * EACH * 1000) / tookMs);
        }
        const note = `${SESSIONS} agents at once, ${EACH} each, over the engine`;
        return [{ what: "entries appended", value: median(taken), unit: "per s", note }];
      } finally {
        await daemon.stop();
      }
    }),
};
