import { Refusal } from "../../contract/refusal.ts";
import { indexedWords, type IndexedSession } from "../../search/expression.ts";
import { type Draft, DRAFT, type EntrySearch, type SearchRow } from "../../search/plan.ts";
import type { EntryRecord } from "../port/record.ts";
import { drafts, openEntry } from "../tables/draft.ts";
import { entries } from "../tables/entry.ts";
import { within } from "../tables/session.ts";
import { maybe, number, valuesOf, word } from "../column.ts";
import { list, raw, sql, type Row, type Sql } from "../sql.ts";

/** The CPU time that one search may use, where it can be measured. */
export const SEARCH_MS = 500;
/** The elapsed time of a search is limited to this many times `SEARCH_MS`, because it may wait for a CPU. */
export const WAITING_TIMES = 4;

export function tooLong(): Refusal {
  return new Refusal(
    "search_too_long",
    "The search took too long and was stopped. Narrow it: name a session, add after:2d or agent:, or write more of a begin*.",
  );
}

export interface HitRow extends SearchRow {
  readonly entry: EntryRecord;
  readonly shortId: string;
  readonly name: string | null;
  readonly agent: string;
  readonly turnIndex: number | null;
}

/** The columns of a hit: its session (`s`), its turn (`t`), then its entry (`e`). */
const OF_SESSION = sql`s.short_id, s.name, s.agent, t.idx`;
const OF_SESSION_COLUMNS = [word(), maybe(word()), word(), maybe(number())] as const;
export const hitColumns = sql`${OF_SESSION}, ${entries.columnsOf("e")}`;

export function hitRow(position: string, row: Row): HitRow {
  const [shortId, name, agent, turnIndex] = valuesOf(row, ...OF_SESSION_COLUMNS);
  return { position, shortId, name, agent, turnIndex, entry: entries.record(row.slice(4)) };
}

/** Selects the rows from which the words of entries are made; `indexedRow` reads such a row. */
export const indexedRows = sql`SELECT s.agent, s.scope, ${entries.columnsOf("e")}
  FROM entries e JOIN sessions s ON s.id = e.session_id`;

export function indexedRow(row: Row): { record: EntryRecord; session: IndexedSession } {
  const [agent, scope] = valuesOf(row, word(), word());
  return { record: entries.record(row.slice(2)), session: { agent, scope } };
}

const DRAFTS_MAX = 200;
/** Reads no more of a draft's text than the index would store. */
const DRAFT_COLUMNS = raw(drafts.columnsOf("d").text.replace("d.text", "substr(d.text, 1, 65536)"));

export function draftRows({ visible }: EntrySearch): Sql {
  return sql`SELECT s.scope, s.entry_count, ${OF_SESSION}, ${DRAFT_COLUMNS}
    FROM drafts d JOIN sessions s ON s.id = d.session_id LEFT JOIN turns t ON t.id = d.turn_id
    WHERE ${within(visible)} ORDER BY d.at DESC, d.session_id LIMIT ${DRAFTS_MAX}`;
}

export function draftOf(row: Row): Draft<HitRow> {
  const [scope, index, ...ofSession] = valuesOf(row, word(), number(), ...OF_SESSION_COLUMNS);
  const [shortId, name, agent, turnIndex] = ofSession;
  const entry = openEntry(drafts.record(row.slice(6)), index);
  const position = DRAFT + entry.sessionId;
  return {
    row: { position, shortId, name, agent, turnIndex, entry },
    words: indexedWords(entry, { agent, scope }),
  };
}

/** Selects, for each session, the names from the root down to it. Each row also has the session's id. */
export function lineageRows(sessionIds: readonly string[]): Sql {
  return sql`WITH RECURSIVE up (of, above, label, parent_id) AS (
      SELECT id, 0, coalesce(name, short_id), parent_id FROM sessions WHERE id IN ${list(sessionIds)}
      UNION ALL
      SELECT up.of, up.above + 1, coalesce(s.name, s.short_id), s.parent_id
        FROM up JOIN sessions s ON s.id = up.parent_id
    ) SELECT of, label FROM up ORDER BY of, above DESC`;
}
