import type pg from "pg";
import { newId } from "../../system/id.ts";
import { asError, errorCode } from "../../system/error.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { Log } from "../../log.ts";
import { eventReads } from "../tables/event.ts";
import { closing, redactWrites, writeOver } from "../around-write.ts";
import { importsOver } from "../tables/history.ts";
import { newListeners } from "../listener.ts";
import { IndexUpkeep } from "../search/upkeep.ts";
import type { Commit, Store } from "../port/store.ts";
import { StoreProblem, type StoreTrouble, StoreUnusable } from "../problem.ts";
import { numberOf } from "../column.ts";
import { sql } from "../sql.ts";
import { tokenWrites } from "../tables/token.ts";
import { type OpenTx, readsOver } from "../tx.ts";
import { Availability } from "./availability.ts";
import { openNodes } from "./nodes.ts";
import { addressOf, openPool, PoolQuery, type Address } from "./connection.ts";
import { openEpoch } from "./epoch.ts";
import { isConnectionLoss } from "./failure.ts";
import { upkeepSteps } from "./search/entry-index.ts";
import { withClient } from "./with-client.ts";
import { migrate } from "./migrate.ts";
import { Searches } from "./search/search.ts";
import { Wakes } from "./wake.ts";
import { TreeQueue, writeDeadline, writeTree } from "./write.ts";

interface PostgresOptions {
  readonly url: string;
  readonly node: string;
  readonly boot: string;
  readonly log: Log;
  /** How long `register` waits for a node with the same name that may still be alive. */
  readonly waitMs: number;
  readonly searchMs?: number | undefined;
  /** If given, opening waits for a server that does not answer yet, and calls this with the reason. */
  readonly waiting?: ((trouble: StoreTrouble) => Promise<void>) | undefined;
}

/** PostgreSQL 13, the first version with `pg_current_xact_id`. */
const VERSION_MIN = 130_000;
const RETRY_MS = 500;

export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const address = addressOf(options.url);
  const pool = openPool(address, options.log);
  try {
    const epoch = await reached(options, address, () =>
      withClient(pool, (client) => prepare(client, address)),
    );
    return await storeOver(options, { address, pool, epoch });
  } catch (error) {
    await pool.end();
    throw readable(error, address);
  }
}

/** Retries until the server answers, if `waiting` is given. */
async function reached<T>(options: PostgresOptions, address: Address, ask: () => Promise<T>): Promise<T> {
  const { waiting, log } = options;
  const since = Date.now();
  for (let isFirst = true; ; isFirst = false) {
    try {
      const value = await ask();
      if (!isFirst) log.info({ ms: Date.now() - since, server: address.shown }, "PostgreSQL answers now");
      return value;
    } catch (error) {
      if (waiting === undefined || !isConnectionLoss(error)) throw error;
      const text = `PostgreSQL at ${address.shown} does not answer (${asError(error).message})`;
      if (isFirst) log.warn({ server: address.shown }, `${text}; waiting for it`);
      await waiting({ since, text });
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function prepare(client: pg.PoolClient, address: Address): Promise<string> {
  const { rows } = await client.query<{ version: string }>(
    "SELECT current_setting('server_version_num') AS version",
  );
  if (Number(rows[0]?.version) < VERSION_MIN) {
    throw new StoreUnusable(
      `${address.shown} is older than PostgreSQL 13. Kinfold needs version 13 or newer.`,
    );
  }
  await migrate(client, address);
  return await openEpoch(client, newId);
}

async function storeOver(
  options: PostgresOptions,
  parts: { address: Address; pool: pg.Pool; epoch: string },
): Promise<Store> {
  const { node, boot, log } = options;
  const { address, pool, epoch } = parts;
  const availability = new Availability({ address, log });
  availability.watch(pool);
  const q = new PoolQuery(pool, availability);
  const listeners = newListeners(log);
  const queue = new TreeQueue();
  const nodes = openNodes({ pool, q, node, boot, waitMs: options.waitMs });
  const wakes = new Wakes({ address, pool, boot, log, heard: (commit) => listeners.committed(commit) });
  await wakes.listen();
  const searches = new Searches(address, options);
  const upkeep = new IndexUpkeep((work) => work(q), upkeepSteps, log);
  const mayBeUnindexed = (): void => upkeep.behind();
  let closed: Promise<void> | null = null;
  return {
    kind: "postgres",
    epoch,
    boot,
    node,
    read: readsOver(q),
    feed: eventReads(q, () => pointOf(q)),
    nodes,
    imports: importsOver({ node, reader: q, plain: (work) => work(q), listeners, mayBeUnindexed }),
    write: writeOver(async (rootId, by, work) => {
      if (closed !== null) throw closing("changed");
      const at = { rootId, by, deadline: writeDeadline() };
      const { value, tx } = await queue.run(rootId, () =>
        redactWrites((begin) => writeTree({ pool, availability }, { ...at, begin }, work)),
      );
      announce(tx, [(commit) => listeners.committed(commit), (commit) => wakes.send(commit)]);
      return value;
    }),
    search: async (search) => {
      if (closed !== null) throw closing("searched");
      return searches.run(search);
    },
    addToken: (token) => redactWrites(() => tokenWrites(q).add(token)),
    revokeToken: (hash, at) => tokenWrites(q).revoke(hash, at),
    ...listeners.port,
    async backup() {
      throw new Refusal("not_available", "The store is a PostgreSQL server; back it up with pg_dump.");
    },
    writesWaiting: () => queue.waiting,
    trouble: () => availability.trouble,
    close: () => (closed ??= close()),
  };

  async function close(): Promise<void> {
    const watched = availability.close();
    const upkept = upkeep.close();
    await queue.idle();
    await upkept;
    await watched;
    await searches.close();
    await wakes.close();
    await nodes
      .release()
      .catch((error: unknown) => log.warn({ error: String(error) }, "could not release the node's row"));
    await pool.end();
  }
}

async function pointOf(q: PoolQuery): Promise<{ xmin: number }> {
  const xmin = sql`SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`;
  return { xmin: await numberOf(q, xmin) };
}

function announce({ rootId, events, wakes }: OpenTx, listeners: readonly ((commit: Commit) => void)[]): void {
  if (events.length === 0 && wakes.size === 0) return;
  for (const listener of listeners) listener({ rootIds: [rootId], wakes: [...wakes] });
}

function readable(error: unknown, address: Address): unknown {
  if (error instanceof StoreProblem) return error;
  const { message } = asError(error);
  const hint = HINTS[errorCode(error)] ?? "Check the address given as store, and that the server is running.";
  return new StoreUnusable(`PostgreSQL at ${address.shown} cannot be used: ${message}. ${hint}`, {
    cause: error,
  });
}

const HINTS: Readonly<Record<string, string>> = {
  "28P01": "Check the user name and the password in the address.",
  "28000": "Check that the server lets this user in (pg_hba.conf).",
  "3D000": "Create the database first, or correct its name.",
  "42501": "The user needs CREATE on the database, or an existing schema of its own.",
};
