import pg from "pg";
import type { Log } from "../../log.ts";
import { StoreUnusable } from "../problem.ts";
import { numbered, type Query, type Row, type Sql } from "../sql.ts";
import { isConnectionLoss, translated } from "./failure.ts";

export interface Address {
  /** For the driver; contains the password. */
  readonly url: string;
  readonly schema: string;
  /** For people; without the password. */
  readonly shown: string;
}

const POOL_MAX = 16;
const CONNECT_MS = 10_000;
const IDLE_MS = 30_000;
/**
 * A server that vanished never answers, so the driver gives up after this time. It is longer than the
 * server's own statement timeout, so that a live server reports its timeout first.
 */
const ANSWER_MS = 40_000;
/** These timeouts exceed any legitimate statement's time. They free a tree's lock when something hangs. */
const SETTINGS = [
  "-c synchronous_commit=on",
  "-c lock_timeout=10000",
  "-c statement_timeout=30000",
  "-c idle_in_transaction_session_timeout=10000",
];

/** `?schema=` names the schema of the tables, so that one database can hold several stores. */
export function addressOf(store: string): Address {
  const url = new URL(store);
  const schema = url.searchParams.get("schema") ?? "kinfold";
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw new StoreUnusable(
      `"${schema}" is not a valid schema name: use lower-case letters, digits and underscores.`,
    );
  }
  url.searchParams.delete("schema");
  const given = url.searchParams.get("options");
  const options = [`-c search_path=${schema}`, ...SETTINGS, ...(given === null ? [] : [given])].join(" ");
  url.searchParams.set("options", options);
  return { url: url.href, schema, shown: `${url.host}${url.pathname} (schema ${schema})` };
}

export function openPool(address: Address, log: Log): pg.Pool {
  return newPool({ ...clientOptions(address), max: POOL_MAX, idleTimeoutMillis: IDLE_MS }, log);
}

/**
 * Returns a pool whose connections always have an error listener, because an error without one ends the
 * process. The pool removes its own listener when it lends a connection, before the borrower can add one. An
 * error can arrive in between: the server's answer and its shutdown notice may come in one packet.
 */
export function newPool(options: pg.PoolConfig, log: Log): pg.Pool {
  const pool = new pg.Pool(options);
  const who = options.application_name;
  pool.on("connect", (client) =>
    client.on("error", (error) => log.debug({ error: error.message, who }, "PostgreSQL connection failed")),
  );
  pool.on("error", (error) => log.warn({ error: error.message, who }, "idle PostgreSQL connection lost"));
  return pool;
}

export function clientOptions(address: Address): pg.ClientConfig {
  return {
    connectionString: address.url,
    application_name: "kinfold",
    connectionTimeoutMillis: CONNECT_MS,
    keepAlive: true,
    query_timeout: ANSWER_MS,
    types: { getTypeParser: parserFor as typeof pg.types.getTypeParser },
  };
}

/** Makes PostgreSQL return times, counts and sums as numbers, as SQLite does. */
function parserFor(oid: number, format?: string): unknown {
  if (oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC) return Number;
  return pg.types.getTypeParser(oid, format as "text");
}

/** Implemented by a pool and by one client of a pool. */
interface Asks {
  query(config: pg.QueryArrayConfig<unknown[]>): Promise<pg.QueryArrayResult<unknown[][]>>;
}

/** How many statements get a name; a named statement is parsed once per connection. */
const NAMED_MAX = 400;
const prepared = new Map<string, { text: string; name?: string }>();

export class PostgresQuery implements Query {
  readonly #asks: Asks;

  constructor(asks: Asks) {
    this.#asks = asks;
  }

  async all(statement: Sql): Promise<Row[]> {
    return (await this.#ask(statement)).rows;
  }

  async get(statement: Sql): Promise<Row | null> {
    return (await this.#ask(statement)).rows[0] ?? null;
  }

  async run(statement: Sql): Promise<number> {
    return (await this.#ask(statement)).rowCount ?? 0;
  }

  #ask(statement: Sql): Promise<pg.QueryArrayResult<unknown[][]>> {
    const { text, name } = preparedFor(statement.text);
    const values = statement.params.map((value) => (typeof value === "string" ? storable(value) : value));
    return this.#asks.query({ text, values, rowMode: "array", ...(name === undefined ? {} : { name }) });
  }
}

interface Watching {
  readonly trouble: object | null;
  failed(error: unknown): void;
}

/** How long a read is retried after its connection was lost, and the pause between tries. */
const RECONNECT_MS = 10_000;
const PAUSE_MS = 100;

/**
 * Queries outside a write. A read whose connection was lost is retried for a while, because servers restart.
 * If the server is known to be down, the read is refused at once.
 */
export class PoolQuery extends PostgresQuery {
  readonly #watching: Watching;

  constructor(pool: pg.Pool, watching: Watching) {
    super(pool);
    this.#watching = watching;
  }

  override all(statement: Sql): Promise<Row[]> {
    return this.#again(() => super.all(statement));
  }

  override get(statement: Sql): Promise<Row | null> {
    return this.#again(() => super.get(statement));
  }

  override async run(statement: Sql): Promise<number> {
    try {
      return await super.run(statement);
    } catch (error) {
      this.#watching.failed(error);
      throw translated(error);
    }
  }

  async #again<T>(ask: () => Promise<T>): Promise<T> {
    const deadline = performance.now() + RECONNECT_MS;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        this.#watching.failed(error);
        const isPatient = this.#watching.trouble === null && performance.now() < deadline;
        if (!isConnectionLoss(error) || !isPatient) throw translated(error);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

function preparedFor(text: string): { text: string; name?: string } {
  const known = prepared.get(text);
  if (known !== undefined) return known;
  const rendered = numbered(text);
  if (prepared.size >= NAMED_MAX) return { text: rendered };
  const made = { text: rendered, name: `kinfold_${prepared.size}` };
  prepared.set(text, made);
  return made;
}

/** PostgreSQL's text cannot hold NUL; U+2400 (␀) replaces it. */
function storable(value: string): string {
  return value.includes("\u0000") ? value.replaceAll("\u0000", "\u2400") : value;
}
