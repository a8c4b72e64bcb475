import { DatabaseSync, type StatementSync } from "node:sqlite";
import type { Param, Query, Row, Sql } from "../sql.ts";
import { translated } from "./failure.ts";

/** When this many statements are prepared, a new one replaces the oldest. */
const STATEMENTS_MAX = 400;

interface RowStatement extends Pick<StatementSync, "run"> {
  all(...params: readonly Param[]): Row[];
  get(...params: readonly Param[]): Row | undefined;
}

/** One connection to the file. Each method works synchronously and returns a promise to fit the interface. */
export class Connection implements Query {
  readonly db: DatabaseSync;
  readonly #path: string;
  readonly #statements = new Map<string, RowStatement>();

  constructor(path: string, options: { readOnly: boolean; cacheKb: number; busyMs: number }) {
    this.#path = path;
    this.db = new DatabaseSync(path, { readOnly: options.readOnly, timeout: options.busyMs });
    this.db.exec(`PRAGMA cache_size = -${options.cacheKb}; PRAGMA temp_store = MEMORY`);
  }

  async all(statement: Sql): Promise<Row[]> {
    return this.#do(() => this.#prepared(statement).all(...statement.params));
  }

  async get(statement: Sql): Promise<Row | null> {
    return this.#do(() => this.#prepared(statement).get(...statement.params) ?? null);
  }

  async run(statement: Sql): Promise<number> {
    return this.#do(() => Number(this.#prepared(statement).run(...statement.params).changes));
  }

  #prepared({ text }: Sql): RowStatement {
    const known = this.#statements.get(text);
    if (known !== undefined) return known;
    const [oldest] = this.#statements.keys();
    if (oldest !== undefined && this.#statements.size >= STATEMENTS_MAX) this.#statements.delete(oldest);
    const made = this.db.prepare(text);
    made.setReturnArrays(true);
    // Rows are arrays because of `setReturnArrays`, but Node's types know only rows that are objects.
    const statement = made as unknown as RowStatement;
    this.#statements.set(text, statement);
    return statement;
  }

  #do<T>(ask: () => T): T {
    try {
      return ask();
    } catch (error) {
      throw translated(error, this.#path);
    }
  }
}
