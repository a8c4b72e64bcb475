import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { reportLines } from "./storm/report.ts";
import { storm } from "./storm/storm.ts";
import type { StoreKind } from "./storm/world.ts";

const KILLS = 20;
/** A storm takes several times as long on a machine that runs other tests. */
const TIMEOUT_MS = 8 * 60_000;

describe("a storm", () => {
  const given = process.env["KINFOLD_STORM_SEED"];
  const seed = given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given);
  for (const store of ["sqlite", "postgres"] satisfies StoreKind[]) {
    test(
      `after twenty kills at random nothing is lost, told twice, stuck or left behind (${store})`,
      {
        timeout: TIMEOUT_MS,
      },
      async (t) => {
        t.diagnostic(`seed ${seed}: KINFOLD_STORM_SEED=${seed} runs it again`);
        const startedAt = performance.now();
        const report = await storm({ seed, store, kills: KILLS, timeMs: TIMEOUT_MS / 2, signal: t.signal });
        const lines = reportLines(report, (performance.now() - startedAt) / 1000);
        t.diagnostic(lines[0]!);
        assert.ok(report.kills >= KILLS, `${report.kills} kills`);
        assert.deepEqual(report.findings, [], lines.join("\n"));
      },
    );
  }
});
