import { Refusal } from "../../contract/refusal.ts";
import { entries } from "../tables/entry.ts";
import type { HitRow } from "./search.ts";
import { list, sql, type Row, type Sql } from "../sql.ts";

/** How long one search may work, where that can be told. */
export const SEARCH_MS = 500;
/** And how many times as long it may take in all, with what it waits for the machine. */
export const WAITING_TIMES = 4;

export function tooLong(): Refusal {
  return new Refusal(
    "search_too_long",
    "The search took too long and was stopped. Narrow it: name a session, add after:2d or agent:, or write more of a begin*.",
  );
}

/** What a hit shows of its session (`s`), its turn (`t`) and its entry (`e`). */
export const hitColumns = sql`s.short_id, s.name, s.agent, t.idx, ${entries.columnsOf("e")}`;

export function hitRow(row: Row): HitRow {
  const [shortId, name, agent, turnIndex] = row as unknown as [string, string | null, string, number | null];
  return { shortId, name, agent, turnIndex, entry: entries.record(row.slice(4)) };
}

/** Each session and all above it: for whom, how far above, and what it is called. */
export function lineageRows(sessionIds: readonly string[]): Sql {
  return sql`WITH RECURSIVE up (of, above, label, parent_id) AS (
      SELECT id, 0, coalesce(name, short_id), parent_id FROM sessions WHERE id IN ${list(sessionIds)}
      UNION ALL
      SELECT up.of, up.above + 1, coalesce(s.name, s.short_id), s.parent_id
        FROM up JOIN sessions s ON s.id = up.parent_id
    ) SELECT of, label FROM up ORDER BY of, above DESC`;
}

export function lineagesIn(rows: readonly Row[]): Map<string, string[]> {
  const lineages = new Map<string, string[]>();
  for (const [of, label] of rows as unknown as [string, string][]) {
    const known = lineages.get(of);
    if (known === undefined) lineages.set(of, [label]);
    else known.push(label);
  }
  return lineages;
}
