import { dirname, join } from "node:path";
import type { Config } from "../contract/index.ts";
import type { Log } from "../log.ts";
import type { Store } from "./port/store.ts";
import { type StoreTrouble, StoreUnusable } from "./problem.ts";
import { openSqlite } from "./sqlite/open.ts";

export interface OpenOptions {
  readonly config: Pick<Config, "store" | "node">;
  /** Where the embedded store is: its database and its lock. */
  readonly paths: {
    readonly database: string;
    readonly lock?: string;
    /** Traces of an earlier store, which prove that a missing one is not new. */
    readonly token?: string;
    readonly rollouts?: string;
  };
  readonly boot: string;
  readonly log: Log;
  /** PostgreSQL: how long to wait for a node of the same name that may still live. */
  readonly waitMs?: number;
  /** How long one search may work, where that is not half a second: a test's machine may be busy. */
  readonly searchMs?: number;
  /** PostgreSQL: given where a server that does not answer yet is waited for; hears what is waited for. */
  readonly waiting?: (trouble: StoreTrouble) => Promise<void>;
}

/** The one place that knows there are two stores. */
export async function openStore(options: OpenOptions): Promise<Store> {
  const { config, paths, boot, log, searchMs } = options;
  const searching = searchMs === undefined ? {} : { searchMs };
  if (/^postgres(ql)?:\/\//.test(config.store)) {
    const { openPostgres } = await import("./postgres/open.ts");
    return openPostgres({
      url: config.store,
      node: config.node,
      boot,
      log,
      waitMs: options.waitMs ?? 0,
      ...searching,
      ...(options.waiting === undefined ? {} : { waiting: options.waiting }),
    });
  }
  if (config.store !== "sqlite") {
    throw new StoreUnusable(`The store "${config.store}" is neither "sqlite" nor a postgres:// address.`);
  }
  return openSqlite({
    path: paths.database,
    lock: paths.lock ?? join(dirname(paths.database), "kinfold.lock"),
    node: config.node,
    boot,
    log,
    ...searching,
    ...(paths.token === undefined || paths.rollouts === undefined
      ? {}
      : { traces: { token: paths.token, rollouts: paths.rollouts } }),
  });
}
