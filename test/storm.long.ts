import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { reportLines } from "./storm/report.ts";
import { storm } from "./storm/storm.ts";
import type { StoreKind } from "./storm/world.ts";

const KILLS = 50;
const TIMEOUT_MS = 14 * 60_000;

describe("a longer storm", () => {
  for (const store of ["sqlite", "postgres"] satisfies StoreKind[]) {
    const seed = Number(process.env["KINFOLD_STORM_SEED"] ?? Math.floor(Math.random() * 2 ** 32));
    test(
      `after fifty kills at random nothing is lost, told twice, stuck or left behind (${store})`,
      {
        timeout: TIMEOUT_MS,
      },
      async (t) => {
        t.diagnostic(`seed ${seed}: KINFOLD_STORM_SEED=${seed} runs it again`);
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
