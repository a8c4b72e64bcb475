import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "../../system/id.ts";
import { asError, errorCode } from "../../system/error.ts";
import { fileSize } from "../../system/file-size.ts";
import type { Log } from "../../log.ts";
import type { EntryIndex } from "../search/entry-index.ts";
import { IndexUpkeep } from "../search/upkeep.ts";
import { eventReads } from "../tables/event.ts";
import { isStale, redactWrites, writeOver } from "../around-write.ts";
import { importsOver } from "../tables/history.ts";
import { type Listeners, newListeners } from "../listener.ts";
import { type ProcessFence, STALE, type Stale, type Store, type Tx } from "../port/store.ts";
import { StoreCorrupt, StoreProblem, StoreUnusable } from "../problem.ts";
import { sql } from "../sql.ts";
import { tokenWrites } from "../tables/token.ts";
import { GuardedQuery, OpenTx, readsOver } from "../tx.ts";
import { backUp } from "./backup.ts";
import { openNodes } from "./nodes.ts";
import { WalCheckpointer } from "./wal/checkpointer.ts";
import { Connection } from "./connection.ts";
import { lastXid, markClean, openEpoch, type Opening } from "./epoch.ts";
import { codeOf, CORRUPT, FULL, NOTADB } from "./failure.ts";
import { WriteLane, type Write } from "./write-lane.ts";
import { takeLock, type Lock, type Note } from "./lock.ts";
import { refuseLoss, refuseOlderThanRollouts } from "./wal/loss.ts";
import { migrate } from "./migrate.ts";
import { Searches } from "./search/search.ts";
import { FullSeconds, sqliteEntryIndex, upkeepSteps } from "./search/entry-index.ts";

export interface SqliteOptions {
  readonly path: string;
  readonly lock: string;
  readonly node: string;
  readonly boot: string;
  readonly log: Log;
  /** The maximum size of the file in pages; beyond it writes are refused as on a full disk. */
  readonly pageCountMax?: number;
  readonly searchMs?: number | undefined;
  /** Files that prove that a missing store once existed: the person's token and the rollouts. */
  readonly traces?: { readonly token?: string; readonly rollouts?: string };
}

const WRITER_CACHE_KB = 16_000;
const READER_CACHE_KB = 8_000;
const OPENING_BUSY_MS = 5_000;
/** How long SQLite waits for a lock. Short, because it blocks the event loop. The write lane then retries. */
const WRITER_BUSY_MS = 2;
/** The largest file that is checked at every opening, and the largest one checked after an unclean end. */
const CHECK_BYTES = 8 * 1024 * 1024;
const CHECK_UNCLEAN_BYTES = 256 * 1024 * 1024;

/** Opens the file exclusively and migrates it to the newest schema. Each failure has a readable error. */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { path } = options;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const hadLock = existsSync(options.lock);
    const lock = await takeLock(options.lock, options.boot);
    try {
      const { token = null, rollouts = null } = options.traces ?? {};
      refuseLoss({ path, note: lock.before, hadLock, token, rollouts });
      return openHeld(options, lock);
    } catch (error) {
      lock.release();
      throw error;
    }
  } catch (error) {
    throw readable(error, path);
  }
}

function openHeld(options: SqliteOptions, lock: Lock): Store {
  const { path, log } = options;
  checkFile(options, lock.before);
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
  const writer = new Connection(path, { readOnly: false, cacheKb: WRITER_CACHE_KB, busyMs: OPENING_BUSY_MS });
  try {
    const opening = prepare(writer.db, options, lock);
    if (opening.uncleanEnd) log.warn({ path }, "the store was not closed cleanly; nothing committed is lost");
    lock.opened();
    const reader = new Connection(path, { readOnly: true, cacheKb: READER_CACHE_KB, busyMs: 1_000 });
    return storeOver(options, { lock, writer, reader, epoch: opening.epoch, xid: opening.xid });
  } catch (error) {
    writer.db.close();
    throw error;
  }
}

function prepare(db: DatabaseSync, options: SqliteOptions, lock: Lock): Opening {
  const { path } = options;
  db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;
    PRAGMA wal_autocheckpoint = 0; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON`);
  migrate(db, path);
  if (options.pageCountMax !== undefined) db.exec(`PRAGMA max_page_count = ${options.pageCountMax}`);
  const opening = openEpoch(db, { path, closedXid: lock.before?.closedXid ?? null, mint: newId });
  db.exec(`PRAGMA busy_timeout = ${WRITER_BUSY_MS}`);
  return opening;
}

interface Parts {
  readonly lock: Lock;
  readonly writer: Connection;
  readonly reader: Connection;
  readonly epoch: string;
  readonly xid: number;
}

/** A write and the transaction whose events and wakes are published after the commit. */
interface TreeWrite<T> extends Write<T> {
  readonly tx: OpenTx;
}

function storeOver(options: SqliteOptions, parts: Parts): Store {
  const { path, node, boot, log } = options;
  const { reader, writer, lock, epoch } = parts;
  const xids = { issued: parts.xid, committed: parts.xid };
  const listeners = newListeners(log);
  const lane: WriteLane = new WriteLane(writer.db, {
    path,
    afterCommit(writes) {
      xids.committed = xids.issued;
      walCheckpointer.grown();
      upkeep.committed(writes.length);
      announce(listeners, writes);
    },
  });
  const searches = new Searches(path, options);
  const pauseUntil = (until: Promise<void>): void => {
    lane.pauseUntil(until);
    searches.pauseUntil(until);
  };
  const walCheckpointer = new WalCheckpointer(path, { log, pauseUntil });
  walCheckpointer.grown();
  const plain = <T>(work: (q: GuardedQuery) => Promise<T>) => lane.run(plainWrite(writer, work));
  const full = new FullSeconds();
  const upkeep = new IndexUpkeep(plain, upkeepSteps(full), log);
  const index = sqliteEntryIndex(() => upkeep.grown(), full);
  let closing: Promise<void> | null = null;
  return {
    kind: "sqlite",
    epoch,
    boot,
    node,
    read: readsOver(reader),
    feed: eventReads(reader, async () => ({ xmin: xids.committed + 1 })),
    nodes: openNodes({ node, boot, reader, plain }),
    imports: importsOver({ node, reader, plain, listeners, mayBeUnindexed: () => upkeep.behind() }),
    write: writeOver((rootId, by, work) =>
      redactWrites((begin) => {
        const at = { rootId, by, writer, index, nextXid: () => ++xids.issued, begin };
        return lane.run(treeWrite(at, work));
      }),
    ),
    search: (search) => searches.run(search),
    addToken: (token) => redactWrites(() => plain((q) => tokenWrites(q).add(token))),
    revokeToken: (hash, at) => plain((q) => tokenWrites(q).revoke(hash, at)),
    ...listeners.port,
    backup: (target) => backUp(path, target),
    writesWaiting: () => lane.waiting,
    trouble: () => null,
    close: () => (closing ??= close()),
  };

  async function close(): Promise<void> {
    const upkept = upkeep.close();
    await lane.close();
    await upkept;
    await searches.close();
    await walCheckpointer.close();
    reader.db.close();
    noteClosed(writer.db, lock, log);
    writer.db.close();
    lock.release();
  }
}

/** Records the clean end before the log is removed. Otherwise a missing log would count as lost commits. */
function noteClosed(db: DatabaseSync, lock: Lock, log: Log): void {
  try {
    const xid = lastXid(db);
    markClean(db);
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    lock.closed(xid);
  } catch (error) {
    log.warn(
      { error: String(error) },
      "could not mark the store as cleanly closed; the next start checks it",
    );
  }
}

function treeWrite<T>(
  at: {
    rootId: string;
    by: ProcessFence | null;
    writer: Connection;
    index: EntryIndex;
    nextXid: () => number;
    begin: () => void;
  },
  work: (tx: Tx) => Promise<T>,
): TreeWrite<T | Stale> {
  const { rootId, by, writer } = at;
  const tx = new OpenTx(writer, rootId, at.index);
  return {
    tx,
    async start() {
      if (by !== null && (await isStale(writer, rootId, by))) return STALE;
      at.begin();
      await writer.run(sql`INSERT INTO trees (root_id) VALUES (${rootId}) ON CONFLICT DO NOTHING`);
      return tx.run(work, at.nextXid);
    },
    revoke: (reason) => tx.revoke(reason),
  };
}

function plainWrite<T>(writer: Connection, work: (q: GuardedQuery) => Promise<T>): Write<T> {
  const q = new GuardedQuery(writer);
  return { start: () => work(q), revoke: (reason) => q.revoke(reason) };
}

function announce(listeners: Listeners, writes: readonly Write<unknown>[]): void {
  const rootIds = new Set<string>();
  const wakes = new Set<string>();
  for (const write of writes) {
    if (!("tx" in write)) continue;
    const { tx } = write as TreeWrite<unknown>;
    if (tx.events.length > 0 || tx.wakes.size > 0) rootIds.add(tx.rootId);
    for (const sessionId of tx.wakes) wakes.add(sessionId);
  }
  if (rootIds.size > 0) listeners.committed({ rootIds: [...rootIds], wakes: [...wakes] });
}

/** Checks the file before anything may write to it, so that a damaged file stays untouched. */
function checkFile({ path, traces }: SqliteOptions, before: Note | null): void {
  const isUnclean = before?.pid != null || before?.openedIn != null;
  const bytes = fileSize(path);
  if (bytes === 0) return;
  const isSmall = bytes <= (isUnclean ? CHECK_UNCLEAN_BYTES : CHECK_BYTES);
  if (!isSmall && !isUnclean) return;
  const db = new DatabaseSync(path, { readOnly: true, timeout: 1_000 });
  try {
    const found = isSmall ? db.prepare("PRAGMA quick_check(1)").get()?.quick_check : "ok";
    if (found !== "ok") throw new StoreCorrupt(path, String(found).replace("*** in database main ***\n", ""));
    if (before?.openedIn != null) refuseOlderThanRollouts(db, path, traces?.rollouts ?? null);
  } finally {
    db.close();
  }
}

function readable(error: unknown, path: string): unknown {
  if (error instanceof StoreProblem) return error;
  const folder = dirname(path);
  const code = codeOf(error);
  if (code === CORRUPT || code === NOTADB) {
    return new StoreCorrupt(path, asError(error).message, { cause: error });
  }
  const system = errorCode(error);
  if (code === FULL || system === "ENOSPC") {
    return new StoreUnusable(`The disk that holds ${folder} is full. Free some space and start again.`, {
      cause: error,
    });
  }
  if (code !== null || system !== "") {
    return new StoreUnusable(
      `The store in ${folder} cannot be opened (${asError(error).message}). ` +
        "Kinfold must be able to write to that folder; KINFOLD_HOME names another.",
      { cause: error },
    );
  }
  return error;
}
