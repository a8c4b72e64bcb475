import { Refusal } from "../contract/refusal.ts";
import { entries } from "./entry.ts";
import type { HitRow } from "./search.ts";
import { sql, type Row } from "./sql.ts";

/** How long one search may take. */
export const SEARCH_MS = 500;

export function tooLong(): Refusal {
  return new Refusal(
    "search_too_long",
    "The search took longer than half a second and was stopped. Narrow it: name a session, add after:2d or agent:, or write more of a begin*.",
  );
}

/** What a hit shows of its session (`s`), its turn (`t`) and its entry (`e`). */
export const hitColumns = sql`s.short_id, s.name, s.agent, t.idx, ${entries.columnsOf("e")}`;

export function hitRow(row: Row): HitRow {
  const [shortId, name, agent, turnIndex] = row as unknown as [string, string | null, string, number | null];
  return { shortId, name, agent, turnIndex, entry: entries.record(row.slice(4)) };
}
