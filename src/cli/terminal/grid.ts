import { clip, columnsOf, padTo } from "./text.ts";
import type { Colour, Paint } from "./paint.ts";

export interface Column {
  readonly title: string;
  /** True for the column that is narrowed if a line is too long. At most one column may be flexible. */
  readonly flexible?: boolean;
  /** If there is no room, the columns with a number here are left out, the highest number first. */
  readonly dropped?: number;
}

export interface Cell {
  readonly text: string;
  readonly colour?: Colour | null;
}

/** Draws a table with aligned columns that fits the width. Text must not contain escape sequences. */
export function gridLines(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  look: { columns: number; paint: Paint },
): string[] {
  const widths = columns.map((column, i) =>
    Math.max(columnsOf(column.title), ...rows.map((row) => columnsOf(row[i]?.text ?? ""))),
  );
  const kept = fitted(columns, widths, look.columns);
  const draw = (cells: readonly Cell[]) =>
    kept
      .map((i) => {
        const cell = cells[i] ?? { text: "" };
        const text = clip(cell.text, widths[i] ?? 0);
        return look.paint(cell.colour ?? null, text) + padTo("", (widths[i] ?? 0) - columnsOf(text));
      })
      .join("  ")
      .trimEnd();
  const head = draw(columns.map((column) => ({ text: column.title, colour: "soft" as const })));
  return [head, ...rows.map(draw)];
}

/** Narrows `widths` in place and returns the columns to draw. */
function fitted(columns: readonly Column[], widths: number[], room: number): number[] {
  let kept = columns.map((_, i) => i);
  const total = () => kept.reduce((sum, i) => sum + (widths[i] ?? 0) + 2, -2);
  const flexible = columns.findIndex((column) => column.flexible);
  const spare = () => (flexible < 0 ? 0 : Math.max(0, (widths[flexible] ?? 0) - FLEXIBLE_MIN));
  while (total() - spare() > room) {
    const candidates = kept.filter((i) => columns[i]?.dropped !== undefined);
    if (candidates.length === 0) break;
    const first = candidates.reduce((a, b) =>
      (columns[b]?.dropped ?? 0) > (columns[a]?.dropped ?? 0) ? b : a,
    );
    kept = kept.filter((i) => i !== first);
  }
  const over = total() - room;
  if (over > 0 && flexible >= 0) widths[flexible] = Math.max(8, (widths[flexible] ?? 0) - over);
  return kept;
}

const FLEXIBLE_MIN = 24;
