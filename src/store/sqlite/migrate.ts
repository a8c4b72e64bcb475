import type { DatabaseSync } from "node:sqlite";
import { migrationsIn } from "../migration.ts";
import { StoreTooNew } from "../problem.ts";

/** Migrates the file to the newest schema. Safe when several processes do it at once. */
export function migrate(db: DatabaseSync, path: string): void {
  const known = migrationsIn(new URL("./migrations/", import.meta.url));
  if (versionOf(db) === known.length) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    const version = versionOf(db);
    if (version > known.length) throw new StoreTooNew(path, version, known.length);
    for (const migration of known.slice(version)) db.exec(migration.text);
    db.exec(`PRAGMA user_version = ${known.length}`);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function versionOf(db: DatabaseSync): number {
  return Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
}
