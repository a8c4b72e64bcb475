import type pg from "pg";
import { errorCode } from "../../../system/error.ts";
import type { Log } from "../../../log.ts";
import { type Expression, fitsWords, indexedWords } from "../../../search/expression.ts";
import type { Candidate } from "../../../search/rank.ts";
import type { EntryFound, EntrySearch } from "../../port/store.ts";
import {
  hitColumns,
  hitRow,
  indexedRow,
  indexedRows,
  SEARCH_MS,
  tooLong,
  WAITING_TIMES,
} from "../../search/row.ts";
import type { SearchDatabase } from "../../search/search.ts";
import { within } from "../../tables/session.ts";
import { number, valueOf } from "../../column.ts";
import { numbered, sql, type Row, type Sql } from "../../sql.ts";
import { type Address, clientOptions, newPool } from "../connection.ts";
import { isConnectionLoss, translated } from "../failure.ts";
import { withClient } from "../with-client.ts";
import { matchOf } from "./match.ts";

const AT_ONCE = 2;
const IDLE_MS = 20_000;
const CONNECT_MS = 5_000;
/** Ranking runs on the event loop, so it yields after this long. */
const YIELD_MS = 2;
const CANCELLED = "57014";

/**
 * Runs searches on separate connections, so that they never take one from a write. The connections open with
 * the first search and close when idle. The server cancels a statement that takes too long.
 */
export class Searches {
  readonly #address: Address;
  readonly #log: Log;
  readonly #limitMs: number;
  #pool: pg.Pool | null = null;

  constructor(address: Address, { log, searchMs = SEARCH_MS }: { log: Log; searchMs?: number | undefined }) {
    this.#address = address;
    this.#log = log;
    // Only the server knows the CPU time of a search, so the elapsed time is limited instead.
    this.#limitMs = searchMs * WAITING_TIMES;
  }

  async run(search: EntrySearch): Promise<EntryFound> {
    this.#pool ??= this.#open();
    const { searchEntries } = await import("../../search/search.ts");
    const pool = this.#pool;
    const ask = (): Promise<EntryFound> =>
      withClient(pool, (client) =>
        searchEntries(sourceOver(client, search, performance.now() + this.#limitMs), search),
      );
    try {
      // Retried once, because idle connections break when a server restarts.
      return await ask().catch((error: unknown) => {
        if (isConnectionLoss(error)) return ask();
        throw error;
      });
    } catch (error) {
      throw errorCode(error) === CANCELLED ? tooLong() : translated(error);
    }
  }

  async close(): Promise<void> {
    await this.#pool?.end();
  }

  #open(): pg.Pool {
    return newPool(
      {
        ...clientOptions(this.#address),
        application_name: "kinfold search",
        max: AT_ONCE,
        idleTimeoutMillis: IDLE_MS,
        connectionTimeoutMillis: CONNECT_MS,
        statement_timeout: this.#limitMs,
      },
      this.#log,
    );
  }
}

function sourceOver(client: pg.ClientBase, { visible }: EntrySearch, deadline: number): SearchDatabase {
  let yieldedAt = performance.now();
  // The statement has no name, so that PostgreSQL plans it for its actual parameters. The best plan depends
  // on how common the words are.
  const all = async (statement: Sql): Promise<Row[]> => {
    const text = numbered(statement.text);
    const values = [...statement.params];
    return (await client.query<unknown[]>({ text, values, rowMode: "array" } as pg.QueryArrayConfig)).rows;
  };
  const checkTime = async (): Promise<void> => {
    const now = performance.now();
    if (now > deadline) throw tooLong();
    if (now - yieldedAt < YIELD_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    yieldedAt = performance.now();
  };
  const fits = async (position: string, expression: Expression): Promise<boolean> => {
    await checkTime();
    const { sessionId, index } = keyOf(position);
    const rows = await all(sql`${indexedRows} WHERE e.session_id = ${sessionId} AND e.idx = ${index}`);
    return rows
      .map(indexedRow)
      .some(({ record, session }) => fitsWords(indexedWords(record, session), expression));
  };
  return {
    all,
    async list(expression, { from, to, past }, limit) {
      const { mayFit, isSure } = matchOf(expression);
      const since = from === 0 ? sql`` : sql` AND e.at >= ${from}`;
      const before = to === Infinity ? sql`` : sql` AND e.at < ${to}`;
      const found: Candidate[] = [];
      for (let last = past; ;) {
        const rows = await all(sql`SELECT e.at, e.session_id, e.idx, ${isSure ?? sql`true`} FROM entries e
          WHERE ${mayFit}${since}${before}${after(last)}
          ORDER BY e.at DESC, e.session_id DESC, e.idx DESC LIMIT ${limit}`);
        for (const row of rows) {
          last = positionOf(row);
          if (row[3] === true || (await fits(last, expression)))
            found.push({ position: last, at: valueOf(row[0], number()) });
        }
        if (rows.length < limit || found.length >= limit) return found.slice(0, limit);
      }
    },
    async rows(positions) {
      const rows = await all(hitRows(positions, visible));
      return rows.map((row) => hitRow(positionOf(row), row.slice(3)));
    },
    async isWhole() {
      return (await all(sql`SELECT 1 FROM entries WHERE words IS NULL LIMIT 1`)).length === 0;
    },
    checkTime,
  };
}

function hitRows(positions: readonly string[], visible: EntrySearch["visible"]): Sql {
  const keys = positions.map(keyOf);
  const sessionIds = JSON.stringify(keys.map(({ sessionId }) => sessionId));
  const indexes = JSON.stringify(keys.map(({ index }) => index));
  return sql`SELECT e.at, e.session_id, e.idx, ${hitColumns}
    FROM ROWS FROM (
        json_array_elements_text(${sessionIds}::json), json_array_elements_text(${indexes}::json)
      ) AS wanted (session_id, idx)
      JOIN entries e ON e.session_id = wanted.session_id AND e.idx = wanted.idx::bigint
      JOIN sessions s ON s.id = e.session_id LEFT JOIN turns t ON t.id = e.turn_id
    WHERE ${within(visible)}`;
}

/** A position is time, session and index. Numbers have a fixed width, so positions sort like rows. */
function positionOf([at, sessionId, index]: Row): string {
  return [wide(at), sessionId, wide(index)].join("/");
}

function wide(number: unknown): string {
  return String(number).padStart(15, "0");
}

/** A position may come from a caller's cursor and be invalid. It then matches no entry. */
function keyOf(position: string): { at: number; sessionId: string; index: number } {
  const [, at = 0, sessionId = "", index = 0] =
    /^(\d{1,15})\/([\da-f-]{1,40})\/(\d{1,15})$/.exec(position) ?? [];
  return { at: Number(at), sessionId, index: Number(index) };
}

/** Matches the entries listed after a position. */
function after(position: string | null): Sql {
  if (position === null) return sql``;
  const { at, sessionId, index } = keyOf(position);
  return sql` AND e.at <= ${at} AND (e.at, e.session_id, e.idx) < (${at}, ${sessionId}, ${index})`;
}
