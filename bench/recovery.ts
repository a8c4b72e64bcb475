import { type Client, connect } from "../src/client/index.ts";
import type { Paths } from "../src/config/index.ts";
import { DaemonProcess, FAKE_DAEMON } from "./daemon-process.ts";
import { inHome } from "./home.ts";
import { atMost, type Measurement } from "./measurement.ts";
import { median, timeMs } from "./sample.ts";

const FAMILIES = 125;
const CHILDREN = 7;
const OPEN = FAMILIES * (CHILDREN + 1);
/** Number of kills per home. More are not possible, because a turn is resumed at most twice. */
const KILLS = 2;
const HOMES = 2;

/** Kills the daemon while every session is in a turn, and measures the time until all of them resume. */
export const recovery: Measurement = {
  name: "recovery",
  async run() {
    const taken: number[] = [];
    for (let home = 0; home < HOMES; home++) taken.push(...(await inHome(killAndRecover)));
    const value = median(taken) / 1000;
    const note = `${OPEN} sessions in a turn, SIGKILL, until health answers and every turn goes on`;
    return [{ what: "recovery", value, unit: "s", goal: atMost(2), note }];
  },
};

async function killAndRecover(paths: Paths): Promise<number[]> {
  const taken: number[] = [];
  let daemon = await DaemonProcess.start(paths, { entry: FAKE_DAEMON, tellTurns: OPEN });
  try {
    await daemon.atWork();
    await fill(connect({ url: daemon.url, token: daemon.token }));
    await daemon.begun;
    for (let kill = 0; kill < KILLS; kill++) {
      await daemon.kill();
      taken.push(
        await timeMs(async () => {
          daemon = await DaemonProcess.start(paths, { entry: FAKE_DAEMON, tellTurns: OPEN });
          await Promise.all([daemon.healthy(), daemon.atWork(), daemon.begun]);
        }),
      );
    }
    return taken;
  } finally {
    await daemon.kill();
  }
}

async function fill(client: Client): Promise<void> {
  const work = { prompt: "sim> hang", agent: "fake" };
  let left = FAMILIES;
  const caller = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const { session } = await client.create(work);
      for (let child = 0; child < CHILDREN; child++) await client.spawn({ id: session.id, ...work });
    }
  };
  await Promise.all(Array.from({ length: 16 }, caller));
}
