/** One line of the table. Without a goal it is told, not judged. */
export interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: Unit;
  readonly goal?: Goal;
  /** What it was compared with, or how it was taken. */
  readonly note: string;
}

export type Unit = "times" | "MB" | "KB" | "B" | "ms" | "s" | "per s" | "MB per s";

export interface Goal {
  readonly is: "at most" | "at least";
  readonly value: number;
}

/** One file of this folder. Its figures are compared only with others of the same run. */
export interface Measurement {
  readonly name: string;
  /** Why it cannot be taken here, or false. */
  skip?(): string | false;
  run(): Promise<readonly Row[]>;
}

export function atMost(value: number): Goal {
  return { is: "at most", value };
}

export function atLeast(value: number): Goal {
  return { is: "at least", value };
}

export function isMet(row: Row): boolean | null {
  if (row.goal === undefined) return null;
  return row.goal.is === "at most" ? row.value <= row.goal.value : row.value >= row.goal.value;
}
