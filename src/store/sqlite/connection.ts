import { DatabaseSync, type StatementSync } from "node:sqlite";
import { StatementCache, type Query, type Row, type Sql } from "../sql.ts";

const STATEMENTS_MAX = 400;

/** One connection to the file. Every call is done when it returns; only its answer is a promise. */
export class Connection implements Query {
  readonly db: DatabaseSync;
  readonly #statements: StatementCache<StatementSync>;

  constructor(path: string, options: { readOnly: boolean; cacheKb: number; busyMs: number }) {
    this.db = new DatabaseSync(path, { readOnly: options.readOnly, timeout: options.busyMs });
    this.db.exec(`PRAGMA cache_size = -${options.cacheKb}; PRAGMA temp_store = MEMORY`);
    this.#statements = new StatementCache(STATEMENTS_MAX, (text) => {
      const statement = this.db.prepare(text);
      statement.setReturnArrays(true);
      return statement;
    });
  }

  async all(statement: Sql): Promise<Row[]> {
    return this.#statements.get(statement.text).all(...statement.params) as unknown as Row[];
  }

  async get(statement: Sql): Promise<Row | null> {
    const row = this.#statements.get(statement.text).get(...statement.params);
    return row === undefined ? null : (row as unknown as Row);
  }

  async run(statement: Sql): Promise<number> {
    return Number(this.#statements.get(statement.text).run(...statement.params).changes);
  }
}
