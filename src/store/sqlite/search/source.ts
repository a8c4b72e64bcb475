import type { Term } from "../../../search/query.ts";
import type { Expression } from "../../search/entry-index.ts";
import { hitColumns, hitRow, lineageRows, lineagesIn, tooLong } from "../../search/row.ts";
import { draftRows } from "../../search/draft.ts";
import type { SearchSource } from "../../search/search.ts";
import { within } from "../../tables/session.ts";
import { list, sql, type Query, type Sql } from "../../sql.ts";
import { DOCS_PER_SECOND, firstDocOf } from "./entry-index.ts";

/** How long the number of entries is good enough. */
const TOTAL_MS = 30_000;
const LAST_DOC = Number.MAX_SAFE_INTEGER;
const known = { total: 0, at: Number.NEGATIVE_INFINITY };

/** What the embedded store can tell a search. Numbers of the index grow with time, so the newest come first. */
export function sqliteSource(q: Query, isOver: () => boolean): SearchSource<number> {
  return {
    async list(expression, { from, to, past }, limit) {
      const least = from === null ? 0 : firstDocOf(from);
      const before = to === null ? LAST_DOC : Math.ceil((to / 1_000) * DOCS_PER_SECOND);
      const below = past === null ? before : Math.min(before, Number(past) || before);
      const rows = await q.all(listed(expression, { least, below, limit }));
      return rows.map((row) => ({ key: row[0] as number, at: timeOf(row[0] as number) }));
    },
    async count(expression, { from, below }, max) {
      const matching = listed(expression, { least: docAt(from), below: docAt(below), limit: max });
      return (await q.get(sql`SELECT count(*) FROM (${matching})`))?.[0] as number;
    },
    async total() {
      if (performance.now() - known.at > TOTAL_MS) {
        known.total = (await q.get(sql`SELECT count(*) FROM entries WHERE doc >= 0`))?.[0] as number;
        known.at = performance.now();
      }
      return known.total;
    },
    async rows(keys, { visible }) {
      const rows =
        await q.all(sql`SELECT e.doc, ${hitColumns} FROM entries e JOIN sessions s ON s.id = e.session_id LEFT JOIN turns t ON t.id = e.turn_id
        WHERE e.doc IN ${list(keys)} AND ${within(visible)}`);
      return rows.map((row) => ({ key: row[0] as number, row: hitRow(row.slice(1)) }));
    },
    order: (a, b) => b.key - a.key,
    place: ({ key }) => String(key),
    lineages: async (sessionIds) => lineagesIn(await q.all(lineageRows(sessionIds))),
    drafts: (search) => q.all(draftRows(search)),
    async isWhole() {
      return (await q.get(sql`SELECT 1 FROM entries WHERE doc IS NULL LIMIT 1`)) === null;
    },
    async breathe() {
      if (isOver()) throw tooLong();
    },
  };
}

function listed(expression: Expression, at: { least: number; below: number; limit: number }): Sql {
  const { all, none } = expression;
  const { least, below, limit } = at;
  if (all.length === 0) {
    const not = none.length === 0 ? sql`` : sql` AND doc NOT IN (${matching(either(none))})`;
    return sql`SELECT doc FROM entries WHERE doc >= ${least} AND doc < ${below}${not}
      ORDER BY doc DESC LIMIT ${limit}`;
  }
  const wanted = all.map((terms) => `(${either(terms)})`).join(" AND ");
  const text = none.length === 0 ? wanted : `(${wanted}) NOT (${either(none)})`;
  return sql`${matching(text)} AND rowid >= ${least} AND rowid < ${below} ORDER BY rowid DESC LIMIT ${limit}`;
}

function matching(text: string): Sql {
  return sql`SELECT rowid FROM entry_index WHERE entry_index MATCH ${text}`;
}

function either(terms: readonly Term[]): string {
  return terms.length === 0 ? NOTHING : terms.map(quoted).join(" OR ");
}

/** A word that no entry has. */
const NOTHING = '"\ue0ff"';

/** Words hold neither quotes nor anything else that FTS5 would read as its own. */
function quoted({ words, isPrefix }: Term): string {
  return `"${words.join(" ")}"${isPrefix ? "*" : ""}`;
}

function docAt(time: number): number {
  return time === Number.POSITIVE_INFINITY ? LAST_DOC : Math.round((time / 1_000) * DOCS_PER_SECOND);
}

function timeOf(doc: number): number {
  return (doc / DOCS_PER_SECOND) * 1_000;
}
