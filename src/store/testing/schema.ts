import type { DatabaseSync } from "node:sqlite";
import type pg from "pg";

/** Returns the schema as text, sorted by name; this is the content of `sqlite/schema.sql`. */
export function sqliteSchema(db: DatabaseSync): string {
  const rows = db
    .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name")
    .all();
  return rows.map((row) => `${String(row.sql)};\n`).join("\n");
}

/** Returns the schema as text, sorted by name; this is the content of `postgres/schema.sql`. */
export async function postgresSchema(client: pg.ClientBase): Promise<string> {
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
