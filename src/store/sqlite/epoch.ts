import { closeSync, fsyncSync, openSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { machineBoot } from "../../system/process-mark.ts";

export interface Opening {
  readonly epoch: string;
  readonly uncleanEnd: boolean;
  /** The last committed transaction number. */
  readonly xid: number;
}

/**
 * Decides which epoch the store has, and marks the file as in use.
 *
 * A client may resume from its feed cursor only if the store still has every event that the client has seen.
 * Commits are synced before any reader sees them, so a killed process loses nothing that was shown: the epoch
 * stays, and clients resume without a gap. A new epoch begins for:
 * - a new file
 * - a backup, which carries a mark
 * - a file that was put there from outside: it has another inode, or lacks a transaction that the lock's note
 *   names
 * - any file after a crash of the machine, because disks may report a write before it is durable
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

/** Returns when this epoch began; 0 if unknown. Older rollout lines are no evidence of a lost event. */
export function epochBegun(db: DatabaseSync): number {
  return Number(db.prepare("SELECT value FROM meta WHERE key = ?").get(BEGUN)?.value ?? 0);
}

export function lastXid(db: DatabaseSync): number {
  return Number(db.prepare("SELECT coalesce(max(xid), 0) AS xid FROM trees").get()?.xid ?? 0);
}

/** Marks a clean end, so that the next opening keeps the epoch. */
export function markClean(db: DatabaseSync): void {
  putMeta(db, { clean: "1" });
}

/** Marks a copy, so that opening it begins a new epoch: clients may have seen events that it lacks. */
export function markRestored(db: DatabaseSync): void {
  // Without a write-ahead log, the copy is one file.
  db.exec("PRAGMA journal_mode = DELETE");
  putMeta(db, { restored: "1" });
}

/** Makes a finished copy durable. */
export function syncFile(path: string): void {
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
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
