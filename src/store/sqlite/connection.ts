import { DatabaseSync, type StatementSync } from "node:sqlite";
import { type Param, StatementCache, type Query, type Row, type Sql } from "../sql.ts";
import { translated } from "./failure.ts";

const STATEMENTS_MAX = 400;

interface RowStatement extends Pick<StatementSync, "run"> {
  all(...params: readonly Param[]): Row[];
  get(...params: readonly Param[]): Row | undefined;
}

/**
 * One connection to the file. Each call is done when it returns; its result is a promise only to fit the
 * interface.
 */
export class Connection implements Query {
  readonly db: DatabaseSync;
  readonly #path: string;
  readonly #statements: StatementCache<RowStatement>;

  constructor(path: string, options: { readOnly: boolean; cacheKb: number; busyMs: number }) {
    this.#path = path;
    this.db = new DatabaseSync(path, { readOnly: options.readOnly, timeout: options.busyMs });
    this.db.exec(`PRAGMA cache_size = -${options.cacheKb}; PRAGMA temp_store = MEMORY`);
    this.#statements = new StatementCache(STATEMENTS_MAX, (text) => {
      const statement = this.db.prepare(text);
      statement.setReturnArrays(true);
      // Node's types only know rows that are objects.
      return statement as unknown as RowStatement;
    });
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

  #prepared(statement: Sql): RowStatement {
    return this.#statements.get(statement.text);
  }

  #do<T>(ask: () => T): T {
    try {
      return ask();
    } catch (error) {
      throw translated(error, this.#path);
    }
  }
}
