import { setTimeout as pause } from "node:timers/promises";
import { connect } from "../src/client/index.ts";
import { DaemonProcess } from "./daemon-process.ts";
import { inHome } from "./home.ts";
import { atMost, type Measurement } from "./measurement.ts";
import { median } from "./sample.ts";

const ROUNDS = 3;
const SETTLE_MS = 1_500;

/**
 * Measures the daemon's memory twice: right after the start, and after the first request, which loads the
 * router and the operations.
 */
export const idleMemory: Measurement = {
  name: "idle-memory",
  run: () =>
    inHome(async (paths) => {
      const started: number[] = [];
      const asked: number[] = [];
      for (let round = 0; round < ROUNDS + 1; round++) {
        const daemon = await DaemonProcess.start(paths);
        try {
          await daemon.healthy();
          await daemon.atWork();
          await pause(SETTLE_MS);
          // The first start is not counted, because it also needs memory to compile the code.
          if (round > 0) started.push(daemon.rssKb() / 1024);
          await connect({ url: daemon.url, token: daemon.token }).list();
          await pause(SETTLE_MS);
          if (round > 0) asked.push(daemon.rssKb() / 1024);
        } finally {
          await daemon.stop();
        }
      }
      const goal = atMost(90);
      const when = `${SETTLE_MS / 1000} s after`;
      return [
        { what: "idle RSS", value: median(started), unit: "MB", goal, note: `${when} the daemon's start` },
        {
          what: "idle RSS after the first request",
          value: median(asked),
          unit: "MB",
          note: `${when} its first list of sessions`,
        },
      ];
    }),
};
