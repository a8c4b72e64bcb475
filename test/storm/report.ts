import type { StormReport } from "./storm.ts";

const SHOWN_MAX = 12;

/** Reports what a storm did and found: each finding with details, and the command that repeats the storm. */
export function reportLines(report: StormReport, seconds: number): string[] {
  const { seed, store, kills, findings, kept } = report;
  const counts = [...report.counts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const end = report.isCut ? "aborted" : `${findings.length} broken promises`;
  const lines = [
    `storm on ${store}: seed ${seed}, ${kills} kills in ${Math.round(seconds)} s, ${end}`,
    ...counts.map(([name, value]) => `  ${name}: ${value}`),
  ];
  for (const [rule, all] of Map.groupBy(findings, (finding) => finding.rule)) {
    lines.push(`BROKEN ${rule}: ${all.length}`);
    for (const { what, detail } of all.slice(0, SHOWN_MAX))
      lines.push(`  ${what}: ${JSON.stringify(detail)}`);
    if (all.length > SHOWN_MAX) lines.push(`  and ${all.length - SHOWN_MAX} more`);
  }
  if (findings.length > 0) {
    lines.push(`repeat it with: npm run storm -- --store ${store} --seed ${seed} --kills ${kills}`);
    if (kept !== null) lines.push(`the home is kept in ${kept}`);
  }
  return lines;
}

export function printReport(report: StormReport, seconds: number): void {
  process.stdout.write(`\r\x1b[K${reportLines(report, seconds).join("\n")}\n`);
}
