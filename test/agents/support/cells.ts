import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { cacheDir } from "./cache.ts";

export type Role = "parent" | "child";

/** The rows of the matrix: what every agent must be able to do. */
export const ROWS = [
  "sees and calls the tools",
  "spawns",
  "is called back while idle",
  "waits",
  "reports its result once",
  "leaves no token in a command line",
  "takes a message while it works",
  "is cancelled with its shell commands",
  "fails when its model fails",
  "is resumed after SIGKILL, every message once",
  "asks a question that its parent answers",
  "has a permission request answered",
] as const;
export type Row = (typeof ROWS)[number];

export interface Cell {
  readonly agent: string;
  readonly role: Role;
  readonly row: Row;
  readonly isProven: boolean;
  readonly note: string;
}

/** Saves in the cache which rows one agent passed, so that each agent can be tested in a separate run. */
export class Cells {
  readonly #agent: string;
  readonly #cells: Cell[] = [];

  constructor(agent: string) {
    this.#agent = agent;
  }

  note(rows: Partial<Record<Role, readonly Row[]>>, isProven: boolean, note = ""): void {
    for (const [role, names] of Object.entries(rows) as [Role, readonly Row[]][]) {
      for (const row of names) this.#cells.push({ agent: this.#agent, role, row, isProven, note });
    }
  }

  save(): void {
    const file = cellsFile(this.#agent);
    const isNew = (old: Cell): boolean =>
      this.#cells.some((cell) => cell.role === old.role && cell.row === old.row);
    const kept = readCells(this.#agent).filter((old) => !isNew(old));
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, `${JSON.stringify([...kept, ...this.#cells], null, 1)}\n`);
  }
}

export function readCells(agent: string): Cell[] {
  try {
    return JSON.parse(readFileSync(cellsFile(agent), "utf8")) as Cell[];
  } catch {
    return [];
  }
}

function cellsFile(agent: string): string {
  return path.join(cacheDir(), "matrix", `${agent}.json`);
}
