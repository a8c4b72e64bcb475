import { statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { machineBoot } from "../../system/process-mark.ts";

export interface Opening {
  readonly epoch: string;
  readonly uncleanEnd: boolean;
  /** The last transaction number that was committed. */
  readonly xid: number;
}

/**
 * Says which epoch this life of the store has, and marks the file as in use.
 *
 * A cursor of the feed is good for as long as nothing it has seen can have gone. Commits are
 * synced before any reader sees them, so a process killed at any instant loses nothing shown and
 * the epoch stays: clients resume without a gap. A new epoch is minted for a new file; for a
 * backup, which carries a mark; for a file that is not the one closed last (another inode, or
 * older than the lock's note says), because somebody put it there; and after an unclean end that
 * the whole machine shared, because disks do lie about having written.
 */
export function openEpoch(
  db: DatabaseSync,
  options: { path: string; closedXid: number | null; mint: () => string },
): Opening {
  const meta = new Map(
    db
      .prepare("SELECT key, value FROM meta")
      .all()
      .map((row) => [String(row.key), String(row.value)]),
  );
  const xid = lastXid(db);
  const machine = machineBoot();
  const file = String(statSync(options.path).ino);
  const uncleanEnd = meta.get("clean") === "0";
  const keeps =
    meta.get("restored") !== "1" &&
    meta.get("file") === file &&
    (options.closedXid === null || options.closedXid <= xid) &&
    (!uncleanEnd || meta.get("machine") === machine);
  const kept = keeps ? meta.get("epoch") : undefined;
  const epoch = kept ?? options.mint();
  const begun = kept === undefined ? { [BEGUN]: String(Date.now()) } : null;
  putMeta(db, { epoch, machine, file, restored: "0", clean: "0", ...begun });
  return { epoch, uncleanEnd, xid };
}

const BEGUN = "epoch_begun";

/** When this epoch began: what was written elsewhere before it says nothing about this file. 0 where nobody noted it. */
export function epochBegun(db: DatabaseSync): number {
  return Number(db.prepare("SELECT value FROM meta WHERE key = ?").get(BEGUN)?.value ?? 0);
}

export function lastXid(db: DatabaseSync): number {
  return Number(db.prepare("SELECT coalesce(max(xid), 0) AS xid FROM trees").get()?.xid ?? 0);
}

/** The next opening keeps the epoch. */
export function markClean(db: DatabaseSync): void {
  putMeta(db, { clean: "1" });
}

/** Whoever opens this copy mints a new epoch: cursors given out since it was made are not of it. */
export function markRestored(db: DatabaseSync): void {
  putMeta(db, { restored: "1" });
}

function putMeta(db: DatabaseSync, values: Readonly<Record<string, string>>): void {
  const put = db.prepare(
    "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
  );
  db.exec("BEGIN IMMEDIATE");
  try {
    for (const [key, value] of Object.entries(values)) put.run(key, value);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}
