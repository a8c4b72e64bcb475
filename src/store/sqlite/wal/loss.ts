import { fileSize } from "../../../system/file-size.ts";
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { machineBoot } from "../../../system/process-mark.ts";
import { StoreLost } from "../../problem.ts";
import type { Note } from "../lock.ts";
import { lastLineOf, newestRollouts } from "../../restore/rollout-file.ts";
import { epochBegun } from "../epoch.ts";
import { readWalIndex, wholeFrames } from "./wal-file.ts";

/** Everything that may prove that a store existed. */
export interface Traces {
  readonly path: string;
  readonly note: Note | null;
  /** Whether the lock file existed before this start. */
  readonly hadLock: boolean;
  readonly token: string | null;
  readonly rollouts: string | null;
}

/**
 * Refuses to open a store that is partly or completely gone, if something proves that it existed. SQLite
 * would not notice: it creates an empty database in place of a missing one, and ignores a missing or damaged
 * write-ahead log.
 */
export function refuseLoss(traces: Traces): void {
  const { path, note } = traces;
  if (fileSize(path) === 0) {
    const proof = proofOf(traces);
    const what = existsSync(path) ? "is empty" : "is missing";
    if (proof.length > 0) throw new StoreLost(`The database ${path} ${what}.`, proof);
    return;
  }
  if (note?.openedIn != null) refuseLostLog(path, note);
}

/**
 * Refuses a database whose log has lost commits. After an unclean end the log holds commits that were not yet
 * copied into the database. If only the process died, the log's index still says how many frames are
 * committed; after a crash of the machine it proves nothing.
 */
function refuseLostLog(path: string, note: Note): void {
  const index = note.openedIn === machineBoot() ? readWalIndex(path) : null;
  const proof = [`it was opened ${openedAt(note)} and not closed`];
  if (index === null) {
    if (existsSync(`${path}-wal`) || isBackup(path)) return;
    throw new StoreLost(
      `The write-ahead log ${path}-wal, which holds the newest commits, is missing.`,
      proof,
    );
  }
  const whole = wholeFrames(path, index);
  if (whole >= index.frames || (whole === 0 && index.copied >= index.frames)) return;
  const what = existsSync(`${path}-wal`) ? "is damaged" : "is missing";
  throw new StoreLost(
    `The write-ahead log ${path}-wal, which holds the newest commits, ${what}: ` +
      `${whole} of its ${index.frames} pages can be read.`,
    proof,
  );
}

/**
 * Checks a database that was not closed cleanly against the newest rollouts: a session or event that is found
 * only in a rollout has been lost from the database. This also detects losses after a crash of the machine.
 * Lines from before the database's current epoch are ignored, because a restore begins a new epoch but keeps
 * the old rollouts.
 */
export function refuseOlderThanRollouts(db: DatabaseSync, path: string, rollouts: string | null): void {
  if (rollouts === null || !hasTrees(db)) return;
  if (isMarkedRestored(db)) return;
  const begun = epochBegun(db);
  const seqOf = db.prepare(
    "SELECT t.seq AS seq FROM sessions s JOIN trees t ON t.root_id = s.root_id WHERE s.id = ?",
  );
  for (const file of newestRollouts(rollouts)) {
    const line = lastLineOf(file.path);
    if (line === null || line.at < begun) continue;
    const { seq: written } = line;
    const kept = Number(seqOf.get(file.sessionId)?.seq ?? 0);
    if (kept >= written) continue;
    throw new StoreLost(`The database ${path} is an older state: its newest commits are gone.`, [
      `${basename(file.path)} has event ${written} of a tree of which the database knows ${kept}`,
    ]);
  }
}

function proofOf({ path, note, hadLock, token, rollouts }: Traces): string[] {
  const proof: string[] = [];
  if (note?.openedIn != null || note?.closedXid != null) {
    proof.push(`it was last opened ${openedAt(note)}`);
  }
  if (fileSize(`${path}-wal`) > 0) proof.push(`its write-ahead log ${basename(path)}-wal is there`);
  if (rollouts !== null && newestRollouts(rollouts).length > 0) proof.push(`${rollouts} holds rollouts`);
  if (token !== null && hadLock && existsSync(token)) proof.push(`${basename(token)} was made for it`);
  return proof;
}

function openedAt({ since: at }: Note): string {
  return at === null ? "at an unknown time" : `at ${new Date(at).toISOString()}`;
}

/**
 * Returns whether the file is a backup that a person put there by hand. A backup has no log, and `immutable`
 * keeps SQLite from creating a log for it.
 */
function isBackup(path: string): boolean {
  const url = pathToFileURL(path);
  url.searchParams.set("immutable", "1");
  const db = new DatabaseSync(url, { readOnly: true });
  try {
    return hasTrees(db) && isMarkedRestored(db);
  } finally {
    db.close();
  }
}

function isMarkedRestored(db: DatabaseSync): boolean {
  return db.prepare("SELECT 1 FROM meta WHERE key = 'restored' AND value = '1'").get() !== undefined;
}

function hasTrees(db: DatabaseSync): boolean {
  const row = db.prepare(
    "SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('trees', 'sessions', 'meta')",
  );
  return Number(row.get()?.n) === 3;
}
