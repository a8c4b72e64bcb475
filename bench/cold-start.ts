import { DaemonProcess, startBareNode } from "./daemon-process.ts";
import { inHome } from "./home.ts";
import { atMost, type Measurement } from "./measurement.ts";
import { inTurn, median, ratio, timeMs } from "./sample.ts";

const ROUNDS = 15;

/** Measures the time from the process start until /api/health answers, on a home that was used before. */
export const coldStart: Measurement = {
  name: "cold-start",
  run: () =>
    inHome(async (paths) => {
      const start = async (): Promise<number> => {
        let daemon: DaemonProcess | null = null;
        try {
          return await timeMs(async () => {
            daemon = await DaemonProcess.start(paths);
            await daemon.healthy();
          });
        } finally {
          await (daemon as DaemonProcess | null)?.stop();
        }
      };
      await start();
      await start();
      const taken = await inTurn(ROUNDS, start, () => timeMs(startBareNode));
      const note = `${median(taken.a).toFixed(0)} ms against ${median(taken.b).toFixed(0)} ms of node -e 0`;
      return [{ what: "cold start", value: ratio(taken), unit: "times", goal: atMost(5), note }];
    }),
};
