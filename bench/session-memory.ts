import { setTimeout as pause } from "node:timers/promises";
import { type Client, connect } from "../src/client/index.ts";
import { DaemonProcess, FAKE_DAEMON } from "./daemon-process.ts";
import { inHome } from "./home.ts";
import { atMost, type Measurement } from "./measurement.ts";

const WARM = 500;
const FURTHER = 2_000;
const AT_ONCE = 16;
const SETTLE_MS = 8_000;

/**
 * Measures the memory that a session keeps after it has worked and become idle. The first sessions are not
 * counted, because they fill caches. A pause before each measurement gives the garbage collector time to run.
 */
export const sessionMemory: Measurement = {
  name: "session-memory",
  run: () =>
    inHome(async (paths) => {
      const daemon = await DaemonProcess.start(paths, { entry: FAKE_DAEMON });
      try {
        await daemon.atWork();
        const client = connect({ url: daemon.url, token: daemon.token });
        await addIdle(client, WARM);
        await pause(SETTLE_MS);
        const before = daemon.rssKb();
        await addIdle(client, FURTHER);
        await pause(SETTLE_MS);
        const value = (daemon.rssKb() - before) / FURTHER;
        const note = `${FURTHER} sessions more, each after a turn, beside ${WARM}`;
        return [{ what: "RSS per further idle session", value, unit: "KB", goal: atMost(20), note }];
      } finally {
        await daemon.stop();
      }
    }),
};

async function addIdle(client: Client, count: number): Promise<void> {
  let left = count;
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const { session } = await client.create({ prompt: "sim> say done", agent: "fake" });
      await client.waitFor(session.id);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
}
