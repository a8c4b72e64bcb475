import type { Expression } from "../../../search/expression.ts";
import type { Term } from "../../../search/query.ts";
import { hitColumns, hitRow, tooLong } from "../../search/row.ts";
import type { Candidate } from "../../../search/rank.ts";
import type { EntrySearch } from "../../port/store.ts";
import type { SearchDatabase } from "../../search/search.ts";
import { within } from "../../tables/session.ts";
import { number, valueOf } from "../../column.ts";
import { list, sql, type Query, type Sql } from "../../sql.ts";
import { DOCS_PER_SECOND, firstDocOf } from "./entry-index.ts";

const LAST_DOC = Number.MAX_SAFE_INTEGER;

/** Lets a search read the embedded store. An entry's position is its `doc` number, which grows with time. */
export function sqliteSource(q: Query, { visible }: EntrySearch, isOver: () => boolean): SearchDatabase {
  return {
    all: (statement) => q.all(statement),
    async list(expression, { from, to, past }, limit) {
      const before = to === Infinity ? LAST_DOC : Math.ceil((to / 1_000) * DOCS_PER_SECOND);
      const below = past === null ? before : Math.min(before, Number(past) || 0);
      const rows = await q.all(listed(expression, { least: firstDocOf(from), below, limit }));
      return rows.map((row) => candidate(valueOf(row[0], number())));
    },
    async rows(positions) {
      const rows = await q.all(sql`SELECT e.doc, ${hitColumns}
        FROM entries e JOIN sessions s ON s.id = e.session_id LEFT JOIN turns t ON t.id = e.turn_id
        WHERE e.doc IN ${list(positions.map(Number))} AND ${within(visible)}`);
      return rows.map((row) => hitRow(positionOf(valueOf(row[0], number())), row.slice(1)));
    },
    async isWhole() {
      return (await q.get(sql`SELECT 1 FROM entries WHERE doc IS NULL LIMIT 1`)) === null;
    },
    async checkTime() {
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

/** A word that no entry contains. */
const NOTHING = '"\ue0ff"';

/** Words contain neither quotes nor any other FTS5 syntax, so they need no escaping. */
function quoted({ words, isPrefix }: Term): string {
  return `"${words.join(" ")}"${isPrefix ? "*" : ""}`;
}

/** Pads the number to a fixed width, so that positions sort like numbers. */
function positionOf(doc: number): string {
  return String(doc).padStart(16, "0");
}

function timeOf(doc: number): number {
  return (doc / DOCS_PER_SECOND) * 1_000;
}

function candidate(doc: number): Candidate {
  return { position: positionOf(doc), at: timeOf(doc) };
}
