import { setTimeout as pause } from "node:timers/promises";
import { DaemonProcess } from "./daemon-process.ts";
import { inHome } from "./home.ts";
import { atMost, type Measurement } from "./measurement.ts";
import { median } from "./sample.ts";

const ROUNDS = 3;
const SETTLE_MS = 1_500;

export const idleMemory: Measurement = {
  name: "idle-memory",
  run: () =>
    inHome(async (paths) => {
      const taken: number[] = [];
      for (let round = 0; round < ROUNDS + 1; round++) {
        const daemon = await DaemonProcess.start(paths);
        try {
          await daemon.healthy();
          await daemon.atWork();
          await pause(SETTLE_MS);
          // The first start compiles, which costs memory that later starts do not need.
          if (round > 0) taken.push(daemon.rssKb() / 1024);
        } finally {
          await daemon.stop();
        }
      }
      const note = `of the daemon ${SETTLE_MS / 1000} s after its start, no session`;
      return [{ what: "idle RSS", value: median(taken), unit: "MB", goal: atMost(90), note }];
    }),
};
