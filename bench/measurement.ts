/** One row of the table of results. A row without a goal is only reported and cannot fail. */
export interface Row {
  readonly what: string;
  readonly value: number;
  readonly unit: Unit;
  readonly goal?: Goal;
  /** What the value is compared with, or how it was measured. */
  readonly note: string;
}

export type Unit = "times" | "MB" | "KB" | "B" | "ms" | "s" | "per s" | "MB per s";

export interface Goal {
  readonly is: "at most" | "at least";
  readonly value: number;
}

/** One measurement; each file in this folder defines one. Figures of different runs cannot be compared. */
export interface Measurement {
  readonly name: string;
  /** Returns the reason why this machine cannot run the measurement, or false if it can. */
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
