import type { Term } from "../../../search/query.ts";
import type { Expression } from "../../../search/expression.ts";
import { sql, type Sql } from "../../sql.ts";
import { MANY } from "./entry-index.ts";

/**
 * Returns one condition for entries that may match, and one for entries that certainly do. They differ
 * because PostgreSQL drops positions of very frequent words; a phrase with such a word must be checked in the
 * entry itself. Entries that are not indexed yet match nothing.
 */
export function matchOf(expression: Expression): { mayFit: Sql; isSure: Sql | null } {
  const { all, none } = expression;
  if (all.length + none.length === 0) return { mayFit: sql`e.words IS NOT NULL`, isSure: null };
  const mayFit = matching(query(expression, perhaps, surely));
  const hasPhrase = [...all.flat(), ...none].some(({ words }) => words.length > 1);
  return { mayFit, isSure: hasPhrase ? matching(query(expression, surely, perhaps)) : null };
}

function matching(query: string): Sql {
  return sql`e.words @@ ${query}::tsquery`;
}

type Write = (term: Term) => string;

function query({ all, none }: Expression, holds: Write, lacks: Write): string {
  return [
    ...all.map((terms) => `(${terms.length === 0 ? NOTHING : terms.map(holds).join(" | ")})`),
    ...none.map((term) => `!(${lacks(term)})`),
  ].join(" & ");
}

/** A word that no entry contains. */
const NOTHING = "'\ue0ff'";

function surely(term: Term): string {
  return `(${written(term).join(" <-> ")})`;
}

function perhaps(term: Term): string {
  if (term.words.length === 1) return surely(term);
  const many = written({ ...term, words: term.words.map((word) => MANY + word) });
  return `(${surely(term)} | ((${many.join(" | ")}) & ${written(term).join(" & ")}))`;
}

/** Words contain neither quotes nor backslashes, so they need no escaping. */
function written({ words, isPrefix }: Term): string[] {
  const last = words.length - 1;
  return words.map((word, at) => `'${word}'${isPrefix && at === last ? ":*" : ""}`);
}
