import { statSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { type Database, type NamedRow, openDatabase, type Table } from "../../sqlite/database.ts";
import { sessionOf, tablesOf } from "./database-source.ts";

/** What is known about a session from its row and the dates of its messages. */
export interface Seen {
  readonly id: string;
  readonly parentId: string | null;
  readonly rowid: number;
  updatedAt: number;
  count: number;
  lastId: string;
  lastRowid: number;
  /** The session's latest message is a finished answer, which gets no more parts. */
  isFinished: boolean;
  /** The number of parts of an unfinished latest message, and when they were last written. */
  parts: string;
}

interface Remembered {
  readonly seen: ReadonlyMap<string, Seen>;
  readonly stamp: string;
  readonly rowidMax: number;
  readonly fullAt: number;
}

/** After this time everything is scanned again, because only a full scan shows removed sessions. */
const FULL_MS = 15_000;
const TRIES_MAX = 4;
const ROWS_AT_ONCE = 2000;
const LOOKED_AT_BYTES_MAX = 1024 * 1024;

/**
 * The last scan of each database, by path. Until the next full scan, an unchanged database is not scanned
 * again, and in a changed one only new and unfinished messages are scanned.
 */
const remembered = new Map<string, Remembered>();

/** Returns the sessions by id. Reads only the messages' dates, and whether each last message is finished. */
export async function sessionsIn(path: string): Promise<ReadonlyMap<string, Seen>> {
  for (let tries = 1; ; tries += 1) {
    const stamp = stampOf(path);
    const known = remembered.get(path);
    if (known !== undefined && known.stamp === stamp && Date.now() - known.fullAt < FULL_MS)
      return known.seen;
    const database = openDatabase(path);
    try {
      const isFresh = known !== undefined && Date.now() - known.fullAt < FULL_MS;
      const look = await lookAt(database, isFresh ? known : null);
      // The agent wrote during the scan, so the rows may be inconsistent. Scans again.
      if (!database.isStill() && tries < TRIES_MAX) continue;
      remembered.set(path, { ...look, stamp, fullAt: isFresh ? known.fullAt : Date.now() });
      return look.seen;
    } catch (error) {
      remembered.delete(path);
      if (database.isStill() || tries >= TRIES_MAX) throw error;
    } finally {
      database.close();
    }
  }
}

/** Scans in steps, so that a large database does not block other work. */
async function lookAt(
  database: Database,
  known: Remembered | null,
): Promise<{ seen: Map<string, Seen>; rowidMax: number }> {
  const { session, message, part } = tablesOf(database);
  const seen = new Map<string, Seen>();
  let count = 0;
  for (const row of session.rows()) {
    const one = newSeen(row, known);
    if (one !== null) seen.set(one.id, one);
    count += 1;
    if (count % ROWS_AT_ONCE === 0) await setImmediate();
  }
  let rowidMax = known?.rowidMax ?? 0;
  for (const row of message.rows(rowidMax)) {
    rowidMax = Math.max(rowidMax, row.rowid);
    const one = seen.get(row.text("session_id") ?? "");
    if (one !== undefined) foldMessage(one, row);
    count += 1;
    if (count % ROWS_AT_ONCE === 0) await setImmediate();
  }
  for (const one of seen.values()) {
    if (one.isFinished || one.lastRowid === 0) continue;
    foldLast(one, message, part);
    await setImmediate();
  }
  return { seen, rowidMax };
}

function newSeen(row: NamedRow, known: Remembered | null): Seen | null {
  const { id, parentId } = sessionOf(row);
  if (id === "") return null;
  const before = known?.seen.get(id);
  const updatedAt = Math.max(updatedIn(row), before?.updatedAt ?? 0);
  const none = { count: 0, lastId: "", lastRowid: 0, isFinished: false, parts: "" };
  return { ...none, ...before, id, parentId, rowid: row.rowid, updatedAt };
}

function foldMessage(one: Seen, row: NamedRow): void {
  const id = row.text("id") ?? "";
  one.count += 1;
  one.updatedAt = Math.max(one.updatedAt, updatedIn(row));
  if (id > one.lastId) [one.lastId, one.lastRowid, one.isFinished] = [id, row.rowid, false];
}

function foldLast(one: Seen, message: Table, part: Table): void {
  const last = message.at(one.lastRowid);
  if (last === null || last.text("id") !== one.lastId) return;
  one.updatedAt = Math.max(one.updatedAt, updatedIn(last));
  one.isFinished =
    last.bytes("data") <= LOOKED_AT_BYTES_MAX && (last.text("data") ?? "").includes('"completed":');
  let [count, updatedAt] = [0, 0];
  for (const row of one.isFinished ? [] : part.where("message_id", one.lastId)) {
    count += 1;
    updatedAt = Math.max(updatedAt, row.number("time_updated") ?? 0);
  }
  one.parts = `${count}/${updatedAt}`;
}

function updatedIn(row: NamedRow): number {
  return row.number("time_updated") ?? row.number("time_created") ?? 0;
}

function stampOf(path: string): string {
  return [path, `${path}-wal`]
    .map((file) => {
      const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
      return stat === undefined ? "" : `${stat.ino}/${stat.size}/${stat.mtimeNs}`;
    })
    .join();
}
