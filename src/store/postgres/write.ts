import type pg from "pg";
import { Refusal } from "../../contract/refusal.ts";
import { writeEvents } from "../event.ts";
import type { Tx } from "../port.ts";
import { sql } from "../sql.ts";
import { GuardedQuery, OpenTx } from "../tx.ts";
import { PostgresQuery } from "./connection.ts";
import { postgresEntryIndex } from "./entry-index.ts";
import { codeOf, IDLE_IN_TRANSACTION, isConnectionLoss, remedyFor, translated } from "./failure.ts";

export interface Written<T> {
  readonly value: T;
  readonly tx: OpenTx;
}

const AGAIN_MAX = 8;
/** How long a server that went away is waited for. */
const RECONNECT_MS = 10_000;
const PAUSE_MS = 25;

/**
 * One write: the tree's row is locked first, the closure runs, the events are numbered last. What
 * the server could not do is tried again as a whole, because nothing of it has been answered. When
 * the connection breaks at the COMMIT itself, the server is asked what became of the transaction.
 */
export async function writeTree<T>(
  pool: pg.Pool,
  rootId: string,
  work: (tx: Tx) => Promise<T>,
): Promise<Written<T>> {
  const deadline = performance.now() + RECONNECT_MS;
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptOnce(pool, rootId, work);
    } catch (error) {
      if (codeOf(error) === IDLE_IN_TRANSACTION && attempt > 1) throw foreignAwait(error);
      const remedy = remedyFor(error);
      const again =
        remedy === "reconnect" ? performance.now() < deadline : remedy === "again" && attempt < AGAIN_MAX;
      if (!again) throw translated(error);
    }
    await pause(PAUSE_MS * attempt * (0.5 + Math.random()));
  }
}

/** Once it may have been the machine that slept. */
function foreignAwait(cause: unknown): Error {
  const text = "A write awaited something other than its own transaction. It was rolled back; this is a bug.";
  return new Error(text, { cause });
}

async function attemptOnce<T>(
  pool: pg.Pool,
  rootId: string,
  work: (tx: Tx) => Promise<T>,
): Promise<Written<T>> {
  const client = await pool.connect();
  let lost: Error | undefined;
  const onError = (error: Error) => {
    lost ??= error;
  };
  client.on("error", onError);
  const q = new GuardedQuery(new PostgresQuery(client));
  const tx = new OpenTx(q, rootId, postgresEntryIndex);
  try {
    const xid = await lockTree(client, q, rootId);
    const value = await work(tx);
    tx.close();
    if (q.failure !== null) throw q.failure;
    await writeEvents(q, { rootId, xid }, tx.events);
    q.revoke("The write has ended; its transaction can no longer be used.");
    await commit(pool, client, xid);
    return { value, tx };
  } catch (error) {
    tx.close();
    q.revoke("The write has failed; its transaction can no longer be used.");
    if (lost !== undefined && codeOf(lost) === IDLE_IN_TRANSACTION) throw lost;
    lost ??= await rolledBack(client);
    throw error;
  } finally {
    client.off("error", onError);
    client.release(lost);
  }
}

/** Begins with the tree's row, made where this is the first write to name it. Answers the transaction's number. */
async function lockTree(client: pg.PoolClient, q: GuardedQuery, rootId: string): Promise<number> {
  const lock = `SELECT pg_current_xact_id()::text::bigint AS xid FROM trees
    WHERE root_id = ${client.escapeLiteral(rootId)} FOR UPDATE`;
  // Two statements in one text are one journey; the driver's types know one result only.
  const both: unknown = await client.query(`BEGIN ISOLATION LEVEL READ COMMITTED; ${lock}`);
  const [, found] = both as [unknown, pg.QueryResult<{ xid: number }>];
  if (found.rows[0] !== undefined) return found.rows[0].xid;
  await q.run(sql`INSERT INTO trees (root_id) VALUES (${rootId}) ON CONFLICT DO NOTHING`);
  const { rows } = await client.query<{ xid: number }>(lock);
  if (rows[0] === undefined) throw new Error(`tree ${rootId} could not be made`);
  return rows[0].xid;
}

async function commit(pool: pg.Pool, client: pg.PoolClient, xid: number): Promise<void> {
  try {
    const { command } = await client.query("COMMIT");
    if (command !== "COMMIT") throw new Error(`the server answered ${command} to a COMMIT`);
  } catch (error) {
    if (!isConnectionLoss(error) || !(await didCommit(pool, xid))) throw error;
  }
}

/** Asks until the server knows, because an answer either way would be a guess. */
async function didCommit(pool: pg.Pool, xid: number): Promise<boolean> {
  const deadline = performance.now() + RECONNECT_MS;
  for (;;) {
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
    if (performance.now() > deadline) {
      throw new Refusal(
        "internal",
        "The connection to PostgreSQL broke while it was committing, and it has not come back to say whether it did. Look before you repeat this.",
      );
    }
    await pause(PAUSE_MS * 4);
  }
}

/** The error that makes the connection unusable, if it is. */
async function rolledBack(client: pg.PoolClient): Promise<Error | undefined> {
  try {
    await client.query("ROLLBACK");
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
