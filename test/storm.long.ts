import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { seedsOf } from "../src/testing/seeds.ts";
import { reportLines } from "./storm/report.ts";
import { storm } from "./storm/storm.ts";
import type { StoreKind } from "./storm/world.ts";

const KILLS = 50;
const TIMEOUT_MS = 14 * 60_000;

describe("a longer storm", () => {
  const stores: StoreKind[] = ["sqlite", "postgres"];
  const runs = seedsOf(import.meta.filename).flatMap((seed) => stores.map((store) => ({ seed, store })));
  for (const { seed, store } of runs) {
    test(
      `after fifty kills at random nothing is lost, told twice, stuck or left behind (${store}, seed ${seed})`,
      {
        timeout: TIMEOUT_MS,
      },
      async (t) => {
        const startedAt = performance.now();
        const report = await storm({
          seed,
          store,
          kills: KILLS,
          timeMs: TIMEOUT_MS - 180_000,
          signal: t.signal,
        });
        const lines = reportLines(report, (performance.now() - startedAt) / 1000);
        for (const line of lines) t.diagnostic(line);
        assert.ok(report.kills >= KILLS, `${report.kills} kills`);
        assert.deepEqual(report.findings, [], lines.join("\n"));
      },
    );
  }
});
