import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { machineBoot } from "../../system/process-mark.ts";
import { StoreLocked, type Holder } from "../problem.ts";
import { BUSY, codeOf } from "./failure.ts";
import { isAlive } from "../../system/proc.ts";

/** The readable file beside the lock. It says who holds the lock, or how the last holder ended. */
export interface Note extends Holder {
  /** The last transaction number at a clean end. If the database has a lower one, someone replaced it. */
  readonly closedXid: number | null;
  /**
   * The id of the machine's boot in which the store was opened. While it is set, the write-ahead log must
   * exist. Null after a clean end, and if no store was ever opened.
   */
  readonly openedIn?: string | null;
}

export interface Lock {
  readonly before: Note | null;
  /** Call this when the write-ahead log exists. Records that the store is open. */
  opened(): void;
  /** Call this when everything is in the database file. Records the last transaction number. */
  closed(xid: number): void;
  /** Releases the lock. If neither `opened` nor `closed` was called, restores the previous holder's note. */
  release(): void;
}

/** How long to retry: a killed process keeps the lock until it has fully exited. */
const DYING_MS = 1_000;
const RETRY_MS = 20;

/**
 * Allows only one daemon per database, by an exclusive transaction on the lock file that stays open as long
 * as the process lives. The kernel releases the lock when the process dies, however it dies. The returned
 * closures keep the handle, because a garbage-collected handle would release the lock. Nothing else in this
 * process may open the lock file, because closing any descriptor of a file drops its POSIX locks.
 */
export async function takeLock(path: string, boot: string): Promise<Lock> {
  const db = new DatabaseSync(path, { timeout: 0 });
  const notePath = `${path}.json`;
  const deadline = performance.now() + DYING_MS;
  while (!tryLock(db)) {
    const holder = readNote(notePath);
    if (performance.now() > deadline || (holder?.pid != null && isAlive(holder.pid))) {
      db.close();
      throw new StoreLocked(path, holder ?? { pid: null, since: null, host: null, boot: null });
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  const before = readNote(notePath);
  const own = { pid: process.pid, since: Date.now(), host: hostname(), boot };
  const { closedXid = null, openedIn = null } = before ?? {};
  let left: Note | null = before;
  writeNote(notePath, { ...own, closedXid, openedIn });
  return {
    before,
    opened() {
      left = { ...own, closedXid, openedIn: machineBoot() };
      writeNote(notePath, left);
    },
    closed(xid) {
      left = { ...own, pid: null, closedXid: xid, openedIn: null };
      writeNote(notePath, left);
    },
    release() {
      if (left !== null) writeNote(notePath, left);
      db.close();
    },
  };
}

function tryLock(db: DatabaseSync): boolean {
  try {
    db.exec("BEGIN EXCLUSIVE");
    return true;
  } catch (error) {
    if (codeOf(error) === BUSY) return false;
    throw error;
  }
}

/** Reads the note of a lock, for a process that does not hold it. */
export function readNote(path: string): Note | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Note;
  } catch {
    // A missing or incomplete note does not matter, because the lock alone decides who may open the store.
    return null;
  }
}

function writeNote(path: string, note: Note): void {
  const file = openSync(`${path}.new`, "w", 0o600);
  try {
    writeFileSync(file, JSON.stringify(note));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
}
