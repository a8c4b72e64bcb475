import type pg from "pg";
import { uuidv7 } from "uuidv7";
import { Refusal } from "../../contract/refusal.ts";
import type { Log } from "../../log.ts";
import { eventReads } from "../event.ts";
import { importsOver } from "../history.ts";
import { Listeners } from "../listener.ts";
import type { Store } from "../port.ts";
import { StoreProblem, StoreUnusable } from "../problem.ts";
import { sql } from "../sql.ts";
import { tokenWrites } from "../token.ts";
import { readsOver } from "../tx.ts";
import { nodesOver } from "./claim.ts";
import { addressOf, openPool, PoolQuery, type Address } from "./connection.ts";
import { openEpoch } from "./epoch.ts";
import { codeOf } from "./failure.ts";
import { Indexer } from "./indexer.ts";
import { migrate } from "./migrate.ts";
import { Searches } from "./search.ts";
import { TreeQueue } from "./tree-queue.ts";
import { Wakes } from "./wake.ts";
import { writeTree } from "./write.ts";

export interface PostgresOptions {
  readonly url: string;
  readonly node: string;
  readonly boot: string;
  readonly log: Log;
  /** How long `register` waits for a node of the same name that may still live. */
  readonly waitMs: number;
  readonly searchMs?: number;
}

/** `pg_current_xact_id` came with this one. */
const VERSION_MIN = 130_000;

export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const address = addressOf(options.url);
  const pool = openPool(address, options.log);
  try {
    const epoch = await prepare(pool, address);
    return await storeOver(options, { address, pool, epoch });
  } catch (error) {
    await pool.end();
    throw readable(error, address);
  }
}

async function prepare(pool: pg.Pool, address: Address): Promise<string> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ version: string }>(
      "SELECT current_setting('server_version_num') AS version",
    );
    if (Number(rows[0]?.version) < VERSION_MIN) {
      throw new StoreUnusable(`${address.shown} is older than PostgreSQL 13, which Kinfold needs at least.`);
    }
    await migrate(client, address);
    return await openEpoch(client, uuidv7);
  } finally {
    client.release();
  }
}

async function storeOver(
  options: PostgresOptions,
  parts: { address: Address; pool: pg.Pool; epoch: string },
): Promise<Store> {
  const { node, boot, log } = options;
  const { address, pool, epoch } = parts;
  const q = new PoolQuery(pool);
  const listeners = new Listeners(log);
  const queue = new TreeQueue();
  const nodes = nodesOver({ pool, q, node, boot, waitMs: options.waitMs });
  const wakes = new Wakes({ address, pool, boot, log, heard: (commit) => listeners.committed(commit) });
  await wakes.listen();
  const searches = new Searches(address, options);
  const indexer = new Indexer(q, log);
  const told = (): void => indexer.start();
  told();
  let closing: Promise<void> | null = null;
  return {
    kind: "postgres",
    epoch,
    boot,
    node,
    read: readsOver(q),
    feed: eventReads(q, async () => {
      const row = await q.get(sql`SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`);
      return { xmin: row?.[0] as number };
    }),
    nodes,
    imports: importsOver({ node, reader: q, plain: (work) => work(q), listeners, told }),
    async write(rootId, work) {
      if (closing !== null) throw closed("changed");
      const { value, tx } = await queue.run(rootId, () => writeTree(pool, rootId, work));
      if (tx.events.length > 0 || tx.wakes.size > 0) {
        const commit = { rootIds: [rootId], wakes: [...tx.wakes] };
        listeners.committed(commit);
        wakes.send(commit);
      }
      return value;
    },
    async search(search) {
      if (closing !== null) throw closed("searched");
      return searches.run(search);
    },
    addToken: (token) => tokenWrites(q).add(token),
    revokeToken: (hash, at) => tokenWrites(q).revoke(hash, at),
    onCommit: (listener) => listeners.onCommit(listener),
    publish: (fragment) => listeners.published(fragment),
    onFragment: (listener) => listeners.onFragment(listener),
    probe: () => listeners.probed(),
    onProbe: (listener) => listeners.onProbe(listener),
    async backup() {
      throw new Refusal("not_available", "The store is a PostgreSQL server; back it up with pg_dump.");
    },
    close: () => (closing ??= close()),
  };

  async function close(): Promise<void> {
    const tended = indexer.close();
    await queue.idle();
    await tended;
    await searches.close();
    await wakes.close();
    await nodes
      .release()
      .catch((error: unknown) => log.warn({ error: String(error) }, "the node's row stays as it is"));
    await pool.end();
  }
}

function closed(done: string): Refusal {
  return new Refusal("shutting_down", `The store is being closed; nothing was ${done}.`);
}

function readable(error: unknown, address: Address): unknown {
  if (error instanceof StoreProblem) return error;
  const { message } = error as Error;
  const hint = HINTS[codeOf(error)] ?? "Check the address given as store, and that the server is running.";
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
