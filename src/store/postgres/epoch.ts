import type pg from "pg";

/**
 * Returns the epoch, which belongs to one schema of one database on one of PostgreSQL's timelines. A crash
 * keeps the epoch: PostgreSQL makes a commit durable before it is visible, so nothing that was shown is lost.
 * A loaded dump, or a server restored to an earlier time, gets a new epoch, because it does not know the
 * transaction numbers in older cursors.
 */
export async function openEpoch(client: pg.ClientBase, mint: () => string): Promise<string> {
  const { rows } = await client.query<{ place: string }>(`
    SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' ||
      (SELECT timeline_id FROM pg_control_checkpoint())::text || '/' ||
      (SELECT oid FROM pg_database WHERE datname = current_database())::text || '/' ||
      (SELECT oid FROM pg_namespace WHERE nspname = current_schema())::text AS place`);
  const place = rows[0]?.place ?? "";
  await client.query("BEGIN");
  await client.query("LOCK TABLE meta IN SHARE ROW EXCLUSIVE MODE");
  const kept = await client.query<{ key: string; value: string }>("SELECT key, value FROM meta");
  const meta = new Map(kept.rows.map(({ key, value }) => [key, value]));
  const known = meta.get("place") === place ? meta.get("epoch") : undefined;
  const epoch = known ?? mint();
  if (known === undefined) {
    await client.query(
      `INSERT INTO meta (key, value) VALUES ('place', $1), ('epoch', $2)
       ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
      [place, epoch],
    );
  }
  await client.query("COMMIT");
  return epoch;
}
