import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { DatabaseSync } from "node:sqlite";
import { isAlive } from "../host.ts";
import { StoreLocked, type Holder } from "../problem.ts";
import { BUSY, codeOf } from "./failure.ts";

/** What stands beside the lock, for others to read: who holds it, or how the last holder left. */
export interface Note extends Holder {
  /** The last transaction number of a clean end: an older file found later was put there by somebody. */
  readonly closedXid: number | null;
}

export interface Lock {
  /** What the holder before left behind. */
  readonly before: Note | null;
  /** Releases the lock, saying how far the store had come; null when it was never opened. */
  release(closedXid: number | null): void;
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
  const note: Note = { pid: process.pid, since: Date.now(), host: hostname(), boot, closedXid: null };
  writeNote(notePath, note);
  return {
    before,
    release(closedXid) {
      const left = closedXid === null ? before : { ...note, pid: null, closedXid };
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

function readNote(path: string): Note | null {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Note;
  } catch {
    // No note, or half of one: it is for people to read, the lock alone decides.
    return null;
  }
}

function writeNote(path: string, note: Note): void {
  writeFileSync(`${path}.new`, JSON.stringify(note), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
