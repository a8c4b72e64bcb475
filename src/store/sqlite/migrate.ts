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

/** Returns the schema as text, sorted by name; this is the content of `schema.sql`. */
export function schemaOf(db: DatabaseSync): string {
  const rows = db
    .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name")
    .all();
  return rows.map((row) => `${String(row.sql)};\n`).join("\n");
}

function versionOf(db: DatabaseSync): number {
  return Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
}
