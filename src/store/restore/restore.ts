import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "../../system/id.ts";
import { asError } from "../../system/error.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { Log } from "../../log.ts";
import { migrationsIn } from "../migration.ts";
import { rebuildFrom, type Rebuilt } from "./rebuild.ts";
import { markRestored, syncFile } from "../sqlite/epoch.ts";
import { codeOf } from "../sqlite/failure.ts";
import { takeLock } from "../sqlite/lock.ts";
import { openSqlite } from "../sqlite/open.ts";
import { readWalIndex, wholeFrames } from "../sqlite/wal/wal-file.ts";

export interface RestoreTarget {
  readonly database: string;
  readonly lock: string;
  readonly rollouts: string;
  readonly node: string;
  readonly log: Log;
}

export type RestoreSource =
  | { readonly from: "backup"; readonly file: string }
  | { readonly from: "rollouts" }
  | { readonly from: "as-is" }
  | { readonly from: "empty" };

export interface Restored extends Rebuilt {
  /** The folder with the previous files; null if there were none. */
  readonly aside: string | null;
}

/**
 * Restores the embedded store while no daemon runs. The new file is complete before the old ones are touched;
 * those are moved into a separate folder, never deleted.
 */
export async function restore(target: RestoreTarget, source: RestoreSource): Promise<Restored> {
  const lock = await takeLock(target.lock, newId());
  const part = `${target.database}.restoring`;
  try {
    for (const suffix of SUFFIXES) rmSync(`${part}${suffix}`, { force: true });
    const rebuilt = await make(target, part, source);
    const aside = moveAside(target.database);
    if (existsSync(part)) renameSync(part, target.database);
    lock.closed(0);
    return { ...rebuilt, aside };
  } finally {
    for (const suffix of [...SUFFIXES, ".lock", ".lock.json"]) rmSync(`${part}${suffix}`, { force: true });
    lock.release();
  }
}

const SUFFIXES = ["", "-wal", "-shm"] as const;
const NOTHING: Rebuilt = { sessions: 0, entries: 0, unreadable: [] };

async function make(target: RestoreTarget, part: string, source: RestoreSource): Promise<Rebuilt> {
  switch (source.from) {
    case "backup":
      takeBackup(source.file, part);
      return NOTHING;
    case "as-is":
      takeAsItIs(target.database, part);
      return NOTHING;
    case "rollouts":
    case "empty": {
      const { node, log } = target;
      const store = await openSqlite({ path: part, lock: `${part}.lock`, node, boot: newId(), log });
      try {
        return source.from === "empty" ? NOTHING : await rebuildFrom(store, target.rollouts);
      } finally {
        await store.close();
      }
    }
  }
}

function takeBackup(file: string, part: string): void {
  const size = statSync(file, { throwIfNoEntry: false });
  if (size === undefined) throw new Refusal("invalid_input", `There is no file ${file}.`);
  if (!size.isFile()) throw new Refusal("invalid_input", `${file} is not a file.`);
  if (existsSync(`${file}-wal`)) {
    throw new Refusal(
      "invalid_input",
      `${file} has a write-ahead log beside it, so it is a store in use and not a backup. Make one with kinfold backup.`,
    );
  }
  copyFileSync(file, part);
  finish(part, file);
}

/**
 * Copies the database, and its write-ahead log only if that is usable. SQLite replays a damaged log up to the
 * first bad frame. If later frames had already been copied into the database, the replay would revert pages
 * to an earlier state.
 */
function takeAsItIs(database: string, part: string): void {
  if (!existsSync(database)) {
    throw new Refusal(
      "invalid_input",
      `There is no database ${database} to restore from. Use a backup, --from-rollouts or --empty instead.`,
    );
  }
  copyFileSync(database, part);
  const index = readWalIndex(database);
  const isUsable = index === null || wholeFrames(database, index) >= index.copied;
  if (existsSync(`${database}-wal`) && isUsable) copyFileSync(`${database}-wal`, `${part}-wal`);
  finish(part, database);
}

/** Checks that the copy is usable, and marks it so that its opening begins a new epoch. */
function finish(part: string, shown: string): void {
  try {
    const db = new DatabaseSync(part);
    try {
      const found = db.prepare("PRAGMA integrity_check(1)").get()?.integrity_check;
      if (found !== "ok") throw unusable(shown, String(found));
      const version = Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
      const known = migrationsIn(new URL("../sqlite/migrations/", import.meta.url)).length;
      if (version < 1) throw unusable(shown, "it is not a store of Kinfold");
      if (version > known) throw unusable(shown, "it was made by a newer Kinfold");
      markRestored(db);
    } finally {
      db.close();
    }
  } catch (error) {
    throw codeOf(error) === null ? error : unusable(shown, asError(error).message);
  }
  syncFile(part);
}

function unusable(file: string, why: string): Refusal {
  return new Refusal("invalid_input", `${file} cannot be used: ${why.trim()}. Nothing was changed.`);
}

function moveAside(database: string): string | null {
  const there = SUFFIXES.filter((suffix) => existsSync(`${database}${suffix}`));
  if (there.length === 0) return null;
  const stamp = new Date().toISOString().replaceAll(":", "-").slice(0, 19);
  const folder = join(dirname(database), `before-restore-${stamp}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const suffix of there) {
    renameSync(`${database}${suffix}`, join(folder, `${basename(database)}${suffix}`));
  }
  return folder;
}
