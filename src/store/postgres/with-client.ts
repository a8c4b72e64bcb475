import type pg from "pg";
import { asError, errorCode } from "../../system/error.ts";
import { IDLE_IN_TRANSACTION, isConnectionLoss } from "./failure.ts";

/**
 * Lends one connection of a pool to `work`. Nothing else may call `pool.connect`: a connection that breaks
 * without an error listener ends the process.
 *
 * A broken connection is closed instead of returned. After failed work the transaction is rolled back. If the
 * connection broke, the caller gets the connection's error, not one that the driver derived from it.
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
    // The pool listens for errors again as soon as `release` is called, so the connection always has a
    // listener.
    client.release(lost);
    client.off("error", onError);
  }
}

function saysLess(error: unknown, lost: Error): boolean {
  return errorCode(lost) === IDLE_IN_TRANSACTION || (errorCode(error) === "" && isConnectionLoss(error));
}

/** Rolls back. Returns the error that makes the connection unusable, if any. */
async function rolledBack(client: pg.PoolClient): Promise<Error | undefined> {
  try {
    await client.query("ROLLBACK");
    return undefined;
  } catch (error) {
    return asError(error);
  }
}
