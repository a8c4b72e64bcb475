// Measures what the design promises. Usage: `npm run bench`, with `--only <name>`, `--json` and `--strict`.
import { mkdirSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { attacks } from "./attacks.ts";
import { codexChild } from "./codex-child.ts";
import { coldStart } from "./cold-start.ts";
import { contextCost } from "./context-cost.ts";
import { entries } from "./entries.ts";
import { history } from "./history.ts";
import { idleMemory } from "./idle-memory.ts";
import { lane } from "./lane.ts";
import { mcpSpawn } from "./mcp-spawn.ts";
import type { Measurement, Row } from "./measurement.ts";
import { recovery } from "./recovery.ts";
import { search } from "./search.ts";
import { sessionMemory } from "./session-memory.ts";
import { settleToStart } from "./settle-to-start.ts";
import { spawn } from "./spawn.ts";
import { tableOf, verdict } from "./table.ts";

const MEASUREMENTS: readonly Measurement[] = [
  coldStart,
  idleMemory,
  sessionMemory,
  spawn,
  mcpSpawn,
  contextCost,
  codexChild,
  settleToStart,
  entries,
  recovery,
  lane,
  search,
  history,
  attacks,
];
/** Above this load per core, other processes distort a measurement. */
const BUSY = 1.5;
const OUT = fileURLToPath(new URL("./out/latest.json", import.meta.url));

process.exitCode = await main();

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      only: { type: "string", multiple: true },
      json: { type: "boolean" },
      strict: { type: "boolean" },
    },
  });
  const names = MEASUREMENTS.map((each) => each.name);
  const unknown = values.only?.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    console.error(`Unknown measurement "${unknown}". Available: ${names.join(", ")}.`);
    return 2;
  }
  const rows: (Row & { name: string })[] = [];
  const broken: string[] = [];
  const skipped: { name: string; reason: string }[] = [];
  for (const measurement of MEASUREMENTS) {
    if (values.only !== undefined && !values.only.includes(measurement.name)) continue;
    const reason = measurement.skip?.() ?? false;
    if (reason !== false) {
      skipped.push({ name: measurement.name, reason });
      continue;
    }
    const from = performance.now();
    try {
      rows.push(...(await measurement.run()).map((row) => ({ name: measurement.name, ...row })));
    } catch (error) {
      broken.push(measurement.name);
      console.error(error);
    }
    console.error(`${measurement.name} (${((performance.now() - from) / 1000).toFixed(1)} s)`);
  }
  const report = reportOf(rows, skipped);
  mkdirSync(path.dirname(OUT), { recursive: true });
  writeFileSync(OUT, `${JSON.stringify(report, null, 2)}\n`);
  console.log(values.json ? JSON.stringify(report, null, 2) : `\n${tableOf(rows)}`);
  const over = rows.filter((row) => verdict(row) === "over");
  if (over.length > 0) console.error(`\nGoal missed: ${over.map((row) => row.what).join("; ")}.`);
  const load = loadavg()[0] ?? 0;
  if (load > availableParallelism() * BUSY) {
    const cores = availableParallelism();
    console.error(
      `The machine was busy (load ${load.toFixed(1)} on ${cores} cores): times are unreliable, ratios less so.`,
    );
  }
  for (const { name, reason } of skipped) console.error(`\nSkipped: ${name} (${reason}).`);
  if (broken.length > 0) console.error(`\nFailed with an error: ${broken.join(", ")}.`);
  return broken.length > 0 || (over.length > 0 && values.strict) ? 1 : 0;
}

function reportOf(rows: readonly (Row & { name: string })[], skipped: readonly object[]): object {
  return {
    at: new Date().toISOString(),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
    cores: availableParallelism(),
    load: loadavg()[0],
    rows: rows.map((row) => ({ ...row, verdict: verdict(row) || null })),
    skipped,
  };
}
