// Regenerates schema.sql of both stores from their migrations. Run it after adding a migration.
import { writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { addressOf, clientOptions } from "../src/store/postgres/connection.ts";
import * as postgres from "../src/store/postgres/migrate.ts";
import * as sqlite from "../src/store/sqlite/migrate.ts";
import { postgresSchema, sqliteSchema } from "../src/store/testing/schema.ts";
import { testPostgres } from "../src/store/testing/test-postgres.ts";

const db = new DatabaseSync(":memory:");
sqlite.migrate(db, ":memory:");
writeFileSync(new URL("../src/store/sqlite/schema.sql", import.meta.url), sqliteSchema(db));
db.close();

const server = await testPostgres();
const url = await server.url();
const client = new pg.Client(clientOptions(addressOf(url)));
await client.connect();
try {
  await postgres.migrate(client, addressOf(url));
  const text = await postgresSchema(client);
  writeFileSync(new URL("../src/store/postgres/schema.sql", import.meta.url), text);
} finally {
  await client.end();
  await server.stop();
}
console.log("Regenerated both schemas from their migrations.");
