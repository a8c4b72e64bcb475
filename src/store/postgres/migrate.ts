import type pg from "pg";
import { migrationsIn } from "../migration.ts";
import { StoreTooNew } from "../problem.ts";
import type { Address } from "./connection.ts";

/** Serializes migrations on one server: every Kinfold uses this arbitrary number. */
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

/** Returns the schema as text, sorted by name; this is the content of `schema.sql`. */
export async function schemaOf(client: pg.ClientBase): Promise<string> {
  const columns = await client.query<{ table: string; line: string }>(`
    SELECT c.relname AS table, a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
      || CASE WHEN o.collname = 'default' OR o.collname IS NULL THEN '' ELSE ' COLLATE "' || o.collname || '"' END
      || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
      || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '') AS line
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
      LEFT JOIN pg_collation o ON o.oid = a.attcollation
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
    ORDER BY c.relname, a.attnum`);
  const rest = await client.query<{ table: string; line: string }>(`
    SELECT c.relname AS table, 'CONSTRAINT ' || k.conname || ' ' || pg_get_constraintdef(k.oid) AS line
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE k.connamespace = current_schema()::regnamespace AND k.contype IN ('p', 'u', 'f', 'c')
    ORDER BY c.relname, k.contype DESC, k.conname`);
  const indexes = await client.query<{ line: string }>(`
    SELECT replace(pg_get_indexdef(i.indexrelid), current_schema() || '.', '') AS line
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE c.relnamespace = current_schema()::regnamespace
      AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u'))
    ORDER BY c.relname`);
  const bodies = new Map<string, string[]>();
  for (const { table, line } of [...columns.rows, ...rest.rows]) {
    bodies.set(table, [...(bodies.get(table) ?? []), line]);
  }
  const tables = [...bodies].map(
    ([table, lines]) => `CREATE TABLE ${table} (\n  ${lines.join(",\n  ")}\n);\n`,
  );
  return `${tables.join("\n")}\n${indexes.rows.map(({ line }) => `${line};\n`).join("")}`;
}
