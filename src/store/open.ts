import { dirname, join } from "node:path";
import type { Config } from "../contract/index.ts";
import type { Log } from "../log.ts";
import type { Store } from "./port/store.ts";
import { type StoreTrouble, StoreUnusable } from "./problem.ts";
import { openSqlite } from "./sqlite/open.ts";

export interface OpenOptions {
  readonly config: Pick<Config, "store" | "node">;
  /** The files of the embedded store. */
  readonly paths: {
    readonly database: string;
    readonly lock?: string;
    /**
     * `token` and `rollouts` are traces of an earlier store. They can prove that a missing database is a
     * loss, not a first start.
     */
    readonly token?: string;
    readonly rollouts?: string;
  };
  readonly boot: string;
  readonly log: Log;
  /** PostgreSQL: how long to wait for a node with the same name that may still be alive. */
  readonly waitMs?: number;
  /** The CPU time that one search may use; default half a second. Tests on a busy machine raise it. */
  readonly searchMs?: number;
  /** PostgreSQL: if given, opening waits for an unresponsive server, and calls this with the reason. */
  readonly waiting?: (trouble: StoreTrouble) => Promise<void>;
}

/** Opens the configured store. Only this function knows that there are two kinds. */
export async function openStore(options: OpenOptions): Promise<Store> {
  const { config, paths, boot, log, searchMs, waitMs = 0, waiting } = options;
  const { node } = config;
  if (/^postgres(ql)?:\/\//.test(config.store)) {
    const { openPostgres } = await import("./postgres/open.ts");
    return openPostgres({ url: config.store, node, boot, log, waitMs, searchMs, waiting });
  }
  if (config.store !== "sqlite") {
    throw new StoreUnusable(
      `The store "${config.store}" is not valid. Use "sqlite" or a postgres:// address.`,
    );
  }
  return openSqlite({
    path: paths.database,
    lock: paths.lock ?? join(dirname(paths.database), "kinfold.lock"),
    node,
    boot,
    log,
    searchMs,
    traces: paths,
  });
}
