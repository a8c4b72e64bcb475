// npm run storm -- --seed N --kills N [--store sqlite|postgres] [--minutes N] [--keep folder]
import { parseArgs } from "node:util";
import { checkedSeed, newSeed } from "../../src/testing/seeds.ts";
import { printReport } from "./report.ts";
import { storm } from "./storm.ts";
import type { StoreKind } from "./world.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    kills: { type: "string", default: "40" },
    store: { type: "string" },
    minutes: { type: "string", default: "30" },
    keep: { type: "string" },
  },
});
const stores: StoreKind[] =
  values.store === "sqlite" || values.store === "postgres" ? [values.store] : ["sqlite", "postgres"];
const seed = values.seed === undefined ? newSeed() : checkedSeed(values.seed);
const kills = Number(values.kills);
const end = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => end.abort());

for (const store of stores) {
  if (end.signal.aborted) break;
  process.stdout.write(`storm on ${store}: seed ${seed}, ${kills} kills\n`);
  const startedAt = performance.now();
  const report = await storm({
    seed,
    store,
    kills,
    timeMs: Number(values.minutes) * 60_000,
    signal: end.signal,
    ...(values.keep === undefined ? {} : { keep: values.keep }),
    onProgress: (done) => process.stderr.write(progressLine(done, startedAt)),
  });
  printReport(report, (performance.now() - startedAt) / 1000);
  if (report.findings.length > 0 || report.isCut) process.exitCode = 1;
}

function progressLine(done: number, startedAt: number): string {
  const seconds = (performance.now() - startedAt) / 1000;
  const left = done === 0 ? 0 : Math.max(0, Math.round((seconds / done) * (kills - done)));
  return `\r  ${done} of ${kills} kills, about ${left} s left \x1b[K`;
}
