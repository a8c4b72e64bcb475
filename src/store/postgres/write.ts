import { setTimeout as pause } from "node:timers/promises";
import type pg from "pg";
import { errorCode } from "../../system/error.ts";
import { Refusal } from "../../contract/refusal.ts";
import { type ProcessFence, STALE, type Stale, type Tx } from "../port/store.ts";
import { type Query, sql } from "../sql.ts";
import { OpenTx } from "../tx.ts";
import type { Availability } from "./availability.ts";
import { PostgresQuery } from "./connection.ts";
import { postgresEntryIndex } from "./search/entry-index.ts";
import { IDLE_IN_TRANSACTION, isConnectionLoss, remedyFor, translated } from "./failure.ts";
import { withClient } from "./with-client.ts";
import { FOREIGN_AWAIT } from "../around-write.ts";

const TRIES_MAX = 8;
/** How long a write waits for a server that went away. */
const RECONNECT_MS = 10_000;
const PAUSE_MS = 25;

interface Writer {
  readonly pool: pg.Pool;
  readonly availability: Availability;
}

interface Written<T> {
  readonly value: T;
  readonly tx: OpenTx;
}

/** Returns the time until which a write that starts now waits for a server that went away. */
export function writeDeadline(): number {
  return performance.now() + RECONNECT_MS;
}

interface At {
  readonly rootId: string;
  readonly by: ProcessFence | null;
  readonly deadline: number;
  /** Called when the closure begins. */
  readonly begin: () => void;
}

/**
 * Runs one write: locks the tree's row, compares the fence, runs the closure, numbers the events. A write
 * that the server could not finish is retried as a whole, because the caller has had no answer yet. If the
 * connection breaks during COMMIT, the server is asked whether the transaction committed.
 */
export async function writeTree<T>(
  writer: Writer,
  at: At,
  work: (tx: Tx) => Promise<T>,
): Promise<Written<T | Stale>> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptOnce(writer, at, work);
    } catch (error) {
      writer.availability.failed(error);
      // An idle transaction is a bug only if it happens again. The first time, the machine may have been
      // asleep.
      if (errorCode(error) === IDLE_IN_TRANSACTION && attempt > 1)
        throw new Error(FOREIGN_AWAIT, { cause: error });
      const remedy = remedyFor(error);
      const again =
        remedy === "reconnect" ? performance.now() < at.deadline : remedy === "retry" && attempt < TRIES_MAX;
      if (!again) throw translated(error);
    }
    await pause(PAUSE_MS * attempt * (0.5 + Math.random()));
  }
}

function attemptOnce<T>(writer: Writer, at: At, work: (tx: Tx) => Promise<T>): Promise<Written<T | Stale>> {
  return withClient(writer.pool, async (client) => {
    const q = new PostgresQuery(client);
    const tx = new OpenTx(q, at.rootId, postgresEntryIndex);
    const xid = await lockTree(client, q, at);
    if (xid === STALE) {
      await client.query("ROLLBACK");
      return { value: STALE, tx };
    }
    at.begin();
    const value = await tx.run(work, () => xid);
    await commit(writer, client, xid);
    return { value, tx };
  });
}

/**
 * Begins the transaction and locks the tree's row; creates the row if this is the first write to name the
 * tree. Returns the transaction number, or `STALE` to a late writer. A second statement reads the fence after
 * the lock is taken, so it sees what was committed during the wait for the lock.
 */
async function lockTree(client: pg.PoolClient, q: Query, { rootId, by }: At): Promise<number | Stale> {
  const lock = `SELECT pg_current_xact_id()::text::bigint AS xid FROM trees
    WHERE root_id = ${client.escapeLiteral(rootId)} FOR UPDATE`;
  const fence = by === null ? "" : `; ${holder(client, rootId, by)}`;
  // Several statements in one text take one round trip. The driver's types allow for only one result.
  const all: unknown = await client.query(`BEGIN ISOLATION LEVEL READ COMMITTED; ${lock}${fence}`);
  const [, found, holders] = all as [unknown, pg.QueryResult<{ xid: number }>, pg.QueryResult | undefined];
  if (holders?.rowCount === 0) return STALE;
  if (found.rows[0] !== undefined) return found.rows[0].xid;
  await q.run(sql`INSERT INTO trees (root_id) VALUES (${rootId}) ON CONFLICT DO NOTHING`);
  const { rows } = await client.query<{ xid: number }>(lock);
  if (rows[0] === undefined) throw new Error(`tree ${rootId} could not be created`);
  return rows[0].xid;
}

function holder(client: pg.PoolClient, rootId: string, { session, fence }: ProcessFence): string {
  return `SELECT 1 FROM sessions WHERE id = ${client.escapeLiteral(session)}
    AND root_id = ${client.escapeLiteral(rootId)} AND fence = ${Math.trunc(fence)}`;
}

async function commit(writer: Writer, client: pg.PoolClient, xid: number): Promise<void> {
  try {
    const { command } = await client.query("COMMIT");
    if (command !== "COMMIT") throw new Error(`the server answered ${command} to a COMMIT`);
  } catch (error) {
    writer.availability.failed(error);
    if (!isConnectionLoss(error) || !(await didCommit(writer, xid))) throw error;
  }
}

/**
 * Asks until the server knows whether the transaction committed, even if the server is away for long, because
 * a wrong guess would lose the write or repeat it. Only the daemon's shutdown ends the wait early.
 */
async function didCommit({ pool, availability }: Writer, xid: number): Promise<boolean> {
  const closing = performance.now() + RECONNECT_MS;
  while (!availability.isClosed || performance.now() < closing) {
    try {
      const { rows } = await pool.query<{ status: string | null }>(
        "SELECT pg_xact_status($1::text::xid8) AS status",
        [String(xid)],
      );
      const status = rows[0]?.status;
      if (status === "committed") return true;
      if (status === "aborted") return false;
    } catch (error) {
      if (!isConnectionLoss(error)) throw error;
    }
    await pause(PAUSE_MS * 4);
  }
  throw new Refusal(
    "internal",
    "The connection to PostgreSQL broke during a commit, and the daemon shut down before the server could say whether the write took effect. Check before you repeat it.",
  );
}

/**
 * Queues the writes of one tree in this process. If they waited in the server for the tree's row, each would
 * hold a connection of the pool.
 */
export class TreeQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  waiting = 0;

  run<T>(rootId: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(rootId);
    const own = before === undefined ? work() : before.then(work, work);
    this.#last.set(rootId, own);
    this.waiting += 1;
    const forget = () => {
      this.waiting -= 1;
      if (this.#last.get(rootId) === own) this.#last.delete(rootId);
    };
    own.then(forget, forget);
    return own;
  }

  /** Resolves when all queued writes have ended. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.allSettled(this.#last.values());
  }
}
