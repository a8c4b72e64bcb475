import type pg from "pg";
import { migrationsIn } from "../migration.ts";
import { StoreTooNew } from "../problem.ts";
import type { Address } from "./connection.ts";

/** An arbitrary number for the lock that lets only one Kinfold at a time migrate on a server. */
const ADVISORY_LOCK = 5_146_320_681;

/**
 * Migrates the schema to the newest version. Safe when several processes do it at once. On failure its
 * transaction stays open; the caller rolls it back or closes the connection.
 */
export async function migrate(client: pg.ClientBase, address: Address): Promise<void> {
  const known = migrationsIn(new URL("./migrations/", import.meta.url));
  if ((await versionOf(client)) === known.length) return;
  await client.query("BEGIN");
  await client.query("SELECT pg_advisory_xact_lock($1)", [ADVISORY_LOCK]);
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${address.schema}`);
  await client.query("CREATE TABLE IF NOT EXISTS migrations (number bigint PRIMARY KEY, name text NOT NULL)");
  const version = await versionOf(client);
  if (version > known.length) throw new StoreTooNew(address.shown, version, known.length);
  for (const migration of known.slice(version)) {
    await client.query(migration.text);
    await client.query("INSERT INTO migrations (number, name) VALUES ($1, $2)", [
      migration.number,
      migration.name,
    ]);
  }
  await client.query("COMMIT");
}

async function versionOf(client: pg.ClientBase): Promise<number> {
  const there = await client.query<{ there: boolean }>(
    "SELECT to_regclass('migrations') IS NOT NULL AS there",
  );
  if (there.rows[0]?.there !== true) return 0;
  const { rows } = await client.query<{ version: number }>(
    "SELECT coalesce(max(number), 0)::int AS version FROM migrations",
  );
  return rows[0]?.version ?? 0;
}
