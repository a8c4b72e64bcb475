import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { machineBoot } from "../../system/process-mark.ts";
import { StoreLocked, type Holder } from "../problem.ts";
import { BUSY, codeOf } from "./failure.ts";
import { isAlive } from "../../system/proc.ts";

/** What stands beside the lock, for others to read: who holds it, or how the last holder left. */
export interface Note extends Holder {
  /** The last transaction number of a clean end: an older file found later was put there by somebody. */
  readonly closedXid: number | null;
  /**
   * The machine's boot in which a store was opened and not closed: then its write-ahead log must be there.
   * Null after a clean end, and before a store was ever opened.
   */
  readonly openedIn?: string | null;
}

export interface Lock {
  /** What the holder before left behind. */
  readonly before: Note | null;
  /** Notes that the store is open, once its write-ahead log exists. */
  opened(): void;
  /** Notes how far the store had come, once everything is in its file. */
  closed(xid: number): void;
  /** Gives the lock up. A note that says neither opened nor closed is left as the holder before wrote it. */
  release(): void;
}

/** A process that was killed may hold the lock for the moment it takes to die. */
const DYING_MS = 1_000;
const RETRY_MS = 20;

/**
 * One daemon per file: an exclusive transaction on the lock file, held for life. The kernel gives
 * it up when the process dies, however it dies. The handle is kept in the closure below, because
 * a handle that is garbage-collected gives the lock up too; and nothing else in this process may
 * open the lock file, because closing any descriptor of a file drops POSIX locks on it.
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

/** What the last holder of a lock left behind, for those who do not hold it. */
export function readNote(path: string): Note | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Note;
  } catch {
    // No note, or half of one: the lock alone decides who may open the store.
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
