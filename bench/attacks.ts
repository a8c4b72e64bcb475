import {
  ATTACKS,
  LONG_MESSAGES,
  HUGE_MESSAGES,
  STRETCH_MAX_MS,
  withFiftyAtWork,
} from "../test/support/attacks.ts";
import { atMost, type Measurement, type Row } from "./measurement.ts";

/**
 * Attacks the daemon from one child, and measures for how long the daemon's main thread does not answer the
 * other sessions.
 */
export const attacks: Measurement = {
  name: "attacks",
  skip: () => (process.platform === "linux" ? false : "processor time of one thread is measured on Linux"),
  async run() {
    const rows: Row[] = [];
    await withFiftyAtWork(async (measure) => {
      for (const [what, attack] of Object.entries({ ...ATTACKS, ...LONG_MESSAGES, ...HUGE_MESSAGES })) {
        const { longestMs, wallMs } = await measure(what, attack);
        const note = `longest stretch in processor time; the attack took ${(wallMs / 1000).toFixed(1)} s`;
        rows.push({ what, value: longestMs, unit: "ms", goal: atMost(STRETCH_MAX_MS), note });
      }
    });
    return rows;
  },
};
