import { type Goal, isMet, type Row, type Unit } from "./measurement.ts";

export function tableOf(rows: readonly Row[]): string {
  const cells = rows.map((row) => [row.what, figure(row.value, row.unit), goal(row), verdict(row), row.note]);
  const all = [["", "figure", "goal", "", ""], ...cells];
  const widths = all[0]!.map((_, at) => Math.max(...all.map((line) => line[at]!.length)));
  return all
    .map((line) =>
      line
        .map((cell, at) => cell.padEnd(widths[at]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

export function verdict(row: Row): "ok" | "over" | "" {
  const met = isMet(row);
  if (met === null) return "";
  return met ? "ok" : "over";
}

function goal({ goal: wanted, unit }: Row): string {
  return wanted === undefined ? "–" : `${SIGN[wanted.is]} ${figure(wanted.value, unit)}`;
}

const SIGN: Readonly<Record<Goal["is"], string>> = { "at most": "≤", "at least": "≥" };

function figure(value: number, unit: Unit): string {
  const digits = Number.isInteger(value) || value >= 1000 ? 0 : value >= 100 ? 1 : 2;
  return `${value.toFixed(digits)}${unit === "times" ? " ×" : ` ${unit}`}`;
}
