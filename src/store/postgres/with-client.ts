import type pg from "pg";
import { asError } from "../../system/error.ts";
import { codeOf, IDLE_IN_TRANSACTION, isConnectionLoss } from "./failure.ts";

/**
 * Lends one connection of a pool to `work`. This is the only place that takes one: a connection
 * that breaks while nobody listens for its error ends the whole process.
 *
 * A connection goes back to the pool only if it can still be used: one that broke is closed, and
 * after failed work its transaction is rolled back. Where the connection broke, the caller gets the
 * error of the connection and not the one that the driver made of it.
 */
export async function withClient<T>(pool: pg.Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let lost: Error | undefined;
  const onError = (error: Error): void => {
    lost ??= error;
  };
  client.on("error", onError);
  try {
    return await work(client);
  } catch (error) {
    if (lost !== undefined && saysLess(error, lost)) throw lost;
    if (isConnectionLoss(error)) lost ??= asError(error);
    else lost ??= await rolledBack(client);
    throw error;
  } finally {
    // The pool listens from here on, before anything else can happen to the connection.
    client.release(lost);
    client.off("error", onError);
  }
}

function saysLess(error: unknown, lost: Error): boolean {
  return codeOf(lost) === IDLE_IN_TRANSACTION || (codeOf(error) === "" && isConnectionLoss(error));
}

/** The error that makes the connection unusable, if it is. */
async function rolledBack(client: pg.PoolClient): Promise<Error | undefined> {
  try {
    await client.query("ROLLBACK");
    return undefined;
  } catch (error) {
    return asError(error);
  }
}
