import pg from "pg";
import type { Log } from "../../../log.ts";
import { entries } from "../../tables/entry.ts";
import { type Expression, fitsWords, indexedWords } from "../../search/entry-index.ts";
import type { EntryFound, EntrySearch } from "../../port/store.ts";
import {
  hitColumns,
  hitRow,
  lineageRows,
  lineagesIn,
  SEARCH_MS,
  tooLong,
  WAITING_TIMES,
} from "../../search/row.ts";
import { draftRows } from "../../search/draft.ts";
import type { Listed, SearchSource } from "../../search/search.ts";
import { within } from "../../tables/session.ts";
import { numbered, sql, type Row, type Sql } from "../../sql.ts";
import { clientOptions, type Address } from "../connection.ts";
import { codeOf, isConnectionLoss, translated } from "../failure.ts";
import { withClient } from "../with-client.ts";
import { matchOf } from "./match.ts";

const AT_ONCE = 2;
const IDLE_MS = 20_000;
const CONNECT_MS = 5_000;
/** Ranking happens on the event loop, which has others to serve. */
const BREATH_MS = 2;
const CANCELLED = "57014";

/**
 * Searches on connections of their own, opened with the first and closed when idle, so that they never
 * take one from a write; the server itself stops a statement that takes too long.
 */
export class Searches {
  readonly #address: Address;
  readonly #log: Log;
  readonly #limitMs: number;
  #pool: pg.Pool | null = null;

  constructor(address: Address, { log, searchMs = SEARCH_MS }: { log: Log; searchMs?: number }) {
    this.#address = address;
    this.#log = log;
    // How long it worked only the server could tell.
    this.#limitMs = searchMs * WAITING_TIMES;
  }

  async run(search: EntrySearch): Promise<EntryFound> {
    this.#pool ??= this.#open();
    const { searchEntries } = await import("../../search/search.ts");
    const pool = this.#pool;
    const ask = (): Promise<EntryFound> =>
      withClient(pool, (client) =>
        searchEntries(sourceOver(client, performance.now() + this.#limitMs), search),
      );
    try {
      // Asked again once, because idle connections break when a server restarts.
      return await ask().catch((error: unknown) => {
        if (isConnectionLoss(error)) return ask();
        throw error;
      });
    } catch (error) {
      throw codeOf(error) === CANCELLED ? tooLong() : translated(error);
    }
  }

  async close(): Promise<void> {
    await this.#pool?.end();
  }

  #open(): pg.Pool {
    const pool = new pg.Pool({
      ...clientOptions(this.#address),
      application_name: "kinfold search",
      max: AT_ONCE,
      idleTimeoutMillis: IDLE_MS,
      connectionTimeoutMillis: CONNECT_MS,
      statement_timeout: this.#limitMs,
    });
    pool.on("error", (error) =>
      this.#log.warn({ error: error.message }, "an idle search connection to PostgreSQL was lost"),
    );
    return pool;
  }
}

/** `session/index`, which no other entry has. */
type Key = `${string}/${number}`;

function sourceOver(client: pg.ClientBase, deadline: number): SearchSource<Key> {
  let breathed = performance.now();
  // Without a name a statement is planned for its words: how common they are decides how they are found.
  const all = async (statement: Sql): Promise<Row[]> => {
    const text = numbered(statement.text);
    const values = [...statement.params];
    return (await client.query<unknown[]>({ text, values, rowMode: "array" } as pg.QueryArrayConfig)).rows;
  };
  const one = async (statement: Sql): Promise<unknown> => (await all(statement))[0]?.[0];
  const breathe = async (): Promise<void> => {
    const now = performance.now();
    if (now > deadline) throw tooLong();
    if (now - breathed < BREATH_MS) return;
    await new Promise((resolve) => setImmediate(resolve));
    breathed = performance.now();
  };
  const fits = async (key: Key, expression: Expression): Promise<boolean> => {
    await breathe();
    return fitsRow((await all(indexedRow(key)))[0], expression);
  };
  return {
    async list(expression, between, limit) {
      const { mayFit, isSure } = matchOf(expression);
      const found: Listed<Key>[] = [];
      for (let { past } = between; ;) {
        const rows = await all(sql`SELECT e.session_id, e.idx, e.at, ${isSure ?? sql`true`} FROM entries e
          WHERE ${mayFit}${inTime(between)}${behind(past)}
          ORDER BY e.at DESC, e.session_id, e.idx DESC LIMIT ${limit}`);
        for (const row of rows) {
          const key = keyOf(row);
          if (row[3] === true || (await fits(key, expression))) found.push({ key, at: row[2] as number });
        }
        const last = rows.at(-1);
        if (last === undefined || rows.length < limit || found.length >= limit) return found.slice(0, limit);
        past = placeOf({ key: keyOf(last), at: last[2] as number });
      }
    },
    async count(expression, { from, below }, max) {
      const until = below === Number.POSITIVE_INFINITY ? null : below;
      const counted = sql`SELECT 1 FROM entries e
        WHERE ${matchOf(expression).mayFit}${inTime({ from, to: until })} LIMIT ${max}`;
      return (await one(sql`SELECT count(*) FROM (${counted}) AS counted`)) as number;
    },
    async total() {
      const guess = (await one(
        sql`SELECT reltuples::bigint FROM pg_class WHERE oid = 'entries'::regclass`,
      )) as number;
      // The server has not looked yet, so there are few.
      return guess > 0 ? guess : ((await one(sql`SELECT count(*) FROM entries`)) as number);
    },
    async rows(keys, { visible }) {
      const rows = await all(hitRows(keys, visible));
      return rows.map((row) => ({ key: keyOf(row), row: hitRow(row.slice(2)) }));
    },
    order: (a, b) => b.at - a.at || keyOrder(a.key, b.key),
    place: placeOf,
    lineages: async (sessionIds) => lineagesIn(await all(lineageRows(sessionIds))),
    drafts: (search) => all(draftRows(search)),
    async isWhole() {
      return (await one(sql`SELECT 1 FROM entries WHERE words IS NULL LIMIT 1`)) === undefined;
    },
    breathe,
  };
}

function hitRows(keys: readonly Key[], visible: EntrySearch["visible"]): Sql {
  const places = keys.map((key) => key.split("/") as [string, string]);
  const sessionIds = JSON.stringify(places.map(([sessionId]) => sessionId));
  const indexes = JSON.stringify(places.map(([, index]) => Number(index)));
  return sql`SELECT e.session_id, e.idx, ${hitColumns}
    FROM ROWS FROM (
        json_array_elements_text(${sessionIds}::json), json_array_elements_text(${indexes}::json)
      ) AS wanted (session_id, idx)
      JOIN entries e ON e.session_id = wanted.session_id AND e.idx = wanted.idx::bigint
      JOIN sessions s ON s.id = e.session_id LEFT JOIN turns t ON t.id = e.turn_id
    WHERE ${within(visible)}`;
}

/** What the words of one entry are made of. */
function indexedRow(key: Key): Sql {
  const [sessionId = "", index] = key.split("/");
  return sql`SELECT s.agent, s.scope, ${entries.columnsOf("e")}
    FROM entries e JOIN sessions s ON s.id = e.session_id
    WHERE e.session_id = ${sessionId} AND e.idx = ${Number(index)}`;
}

function fitsRow(row: Row | undefined, expression: Expression): boolean {
  if (row === undefined) return false;
  const session = { agent: row[0] as string, scope: row[1] as string };
  return fitsWords(indexedWords(entries.record(row.slice(2)), session), expression);
}

function placeOf({ key, at }: Listed<Key>): string {
  return `${at}/${key}`;
}

function keyOf(row: Row): Key {
  return `${row[0] as string}/${row[1] as number}`;
}

function keyOrder(a: Key, b: Key): number {
  const [of, index] = a.split("/") as [string, string];
  const [other, otherIndex] = b.split("/") as [string, string];
  return of === other ? Number(otherIndex) - Number(index) : of < other ? -1 : 1;
}

/** What comes after the entry of that name, in the order of a list. */
function behind(past: string | null): Sql {
  const [, at, sessionId, index] = /^(\d{1,15})\/([\da-f-]{1,40})\/(\d{1,15})$/.exec(past ?? "") ?? [];
  if (at === undefined || sessionId === undefined) return sql``;
  return sql` AND e.at <= ${Number(at)} AND (e.at < ${Number(at)} OR e.session_id > ${sessionId}
    OR (e.session_id = ${sessionId} AND e.idx < ${Number(index)}))`;
}

function inTime({ from, to }: { from: number | null; to: number | null }): Sql {
  const since = from === null ? sql`` : sql` AND e.at >= ${from}`;
  return to === null ? since : sql`${since} AND e.at < ${to}`;
}
